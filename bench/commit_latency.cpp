// How long one job's submission takes to become durable in a store that holds many, checkpoints
// included; beside it a plain write and fdatasync of as many bytes in the same directory, in turns,
// so that both meet the same disk.
//
// commit_latency [JOBS [COMMITS [DIRECTORY]]]

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "store_fill.hpp"

namespace {

using namespace berth;
using namespace berth::bench;

constexpr std::uint64_t kTurn = 500;
constexpr std::int64_t kRawFile = 64 << 20;

class RawFile {
 public:
  explicit RawFile(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    const std::string block(1 << 20, 'x');
    for (std::int64_t at = 0; at < kRawFile; at += 1 << 20) {
      check(::pwrite(fd_.get(), block.data(), block.size(), at) > 0);
    }
    check(::fsync(fd_.get()) == 0);
  }
  void write(std::size_t bytes) {
    if (offset_ + static_cast<std::int64_t>(bytes) > kRawFile) {
      offset_ = 0;
    }
    buffer_.assign(bytes, 'y');
    check(::pwrite(fd_.get(), buffer_.data(), bytes, offset_) > 0 && ::fdatasync(fd_.get()) == 0);
    offset_ += static_cast<std::int64_t>(bytes);
  }

 private:
  static void check(bool ok) {
    if (!ok) {
      std::perror("bench: raw file");
      std::exit(1);
    }
  }
  Fd fd_;
  std::int64_t offset_ = 0;
  std::string buffer_;
};

void report(const char* what, std::vector<double> times) {
  std::ranges::sort(times);
  fmt::print("{:<24} p50 {:8.3f}  p99 {:8.3f}  p99.9 {:8.3f}  max {:8.3f} ms\n", what,
             quantile(times, 0.5), quantile(times, 0.99), quantile(times, 0.999), times.back());
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t jobs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const std::uint64_t commits = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20'000;
  std::string name = std::string(argc > 3 ? argv[3] : ".") + "/berth-bench-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    std::perror("bench: cannot make a directory");
    return 1;
  }
  const std::filesystem::path directory = name;
  {
    DrivenStore store(directory / "store.db");
    const auto begun = std::chrono::steady_clock::now();
    fill(store, jobs, false);
    fmt::print("{} jobs stored in {:.1f} s\n", jobs, milliseconds_since(begun) / 1'000);
    // Pages that one commit adds to the log: jobs, its three indexes, payload, counters, header.
    constexpr std::size_t kCommitBytes = 9 * 4'120;
    RawFile raw(directory / "raw");
    const auto environment = usual_environment();
    std::vector<double> ours;
    std::vector<double> theirs;
    std::uintmax_t largest = 0;
    std::uint64_t id = jobs;
    for (std::uint64_t turn = 0; turn * kTurn < commits; ++turn) {
      for (std::uint64_t n = 0; n < kTurn; ++n) {
        Changes changes{a_job(++id, environment)};
        const auto from = std::chrono::steady_clock::now();
        store.commit(std::move(changes));
        ours.push_back(milliseconds_since(from));
      }
      largest = std::max(largest, std::filesystem::file_size(directory / "store.db-wal"));
      for (std::uint64_t n = 0; n < kTurn; ++n) {
        const auto from = std::chrono::steady_clock::now();
        raw.write(kCommitBytes);
        theirs.push_back(milliseconds_since(from));
      }
    }
    report("commit of one job", std::move(ours));
    report("write and fdatasync", std::move(theirs));
    fmt::print("log at most {} MiB\n", largest >> 20);
  }
  std::filesystem::remove_all(directory);
  return 0;
}
