#pragma once
// What cards did and what attempts used of them, kept in two ring files. Every look at the cards is
// written down, whoever wanted it; nobody looks for the sake of the history, so an idle machine
// stays idle.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/state.hpp"
#include "daemon/loop.hpp"
#include "daemon/worker.hpp"
#include "ring/ring_file.hpp"

namespace berth {

/// What a look at the cards has shown, for the ring files.
struct HistoryLook {
  std::vector<RingSample> gpus;
  std::vector<RingSample> attempts;  ///< by their ids
};
[[nodiscard]] HistoryLook history_look(const State& state, Millis wall);

/// Belongs to the loop's thread; the files are on one of their own.
class GpuHistory {
 public:
  GpuHistory(Loop& loop, const std::string& dir);

  void sampled(const State& state, Millis wall);

  enum class Of : std::uint8_t { gpus, attempts };
  using Then = std::function<void(Result<std::vector<RingSample>>)>;
  void read(Of of, std::uint64_t key, Millis from, Millis to, std::size_t points, Then then);

 private:
  struct File {
    std::string path;
    std::optional<RingFile> ring;
  };
  [[nodiscard]] static Status open(File& file);
  [[nodiscard]] File& file(Of of) { return of == Of::gpus ? gpus_ : attempts_; }

  Loop& loop_;
  File gpus_;  ///< on the thread of `worker_`, like the next
  File attempts_;
  Worker worker_;  ///< ends before what it uses
};

}  // namespace berth
