#pragma once
// The daemon's side of the claims board: asks it before an attempt gets GPUs, keeps it in step with
// what State has claimed, and tells State what the berths of others hold. All files and sockets are
// a worker's business; the loop only hands over values.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "board/board.hpp"
#include "core/effect.hpp"
#include "core/event.hpp"
#include "core/state.hpp"
#include "daemon/loop.hpp"
#include "daemon/worker.hpp"

namespace berth {

class BoardWatch {
 public:
  struct Hooks {
    std::function<void(Event)> emit;
    std::function<const State&()> state;
    std::function<void(const std::string& problem)> warn;
  };
  /// Why the attempt must not start; none: it may.
  using Answer = std::function<void(std::optional<std::string> why)>;

  BoardWatch(Loop& loop, std::unique_ptr<Board> board, Hooks hooks);
  /// Leaves the board, unless attempts run on.
  ~BoardWatch();
  BoardWatch(const BoardWatch&) = delete;
  BoardWatch& operator=(const BoardWatch&) = delete;

  /// Says what the attempts hold that the last daemon left running.
  void begin();
  /// Asks for an attempt's cards and answers later, on the loop. Before a refusal State has learnt
  /// who holds them, and a random moment has passed, so that two who want the same do not keep
  /// step.
  void ask(const effect::Start& start, Answer answer);
  /// After claims may have changed: lets go of what has no claim any more.
  void claims_changed();
  /// Reads the board for somebody who wants to see the cards, and calls back.
  void look(std::function<void()> then);
  /// After a look at the GPUs: reads the board if that matters to anybody.
  void sampled();

 private:
  using Held = std::map<std::string, std::string>;

  void refuse(AttemptId attempt, std::string why, Held held, const Answer& answer);
  void tell(Held held);
  /// Who sees the other's process on a card never asks for it, so never is refused: it says all the
  /// same that it waits, or would get its turn only when the other has nothing more to run.
  void queue_up(const Held& held);
  /// On the worker.
  [[nodiscard]] std::string owner(const CardHolder& holder);
  [[nodiscard]] Held name_owners(const std::map<std::string, CardHolder>& holders);
  void note(const Status& status);

  Loop& loop_;
  std::unique_ptr<Board> board_;  ///< the worker's
  Hooks hooks_;
  std::map<std::uint32_t, std::string> names_;  ///< of users; the worker's
  std::string problem_;                         ///< last told; the worker's
  Board::Kept kept_;                            ///< last handed to the board
  bool reading_ = false;
  std::map<AttemptId, Loop::Handle> refusals_;
  Worker worker_;  ///< last: it ends first
};

/// The board of this machine, or why there is none: none is wanted, or (logged) none can be used.
/// Simulated cards are an instance's own and are put on a board only where BERTH_BOARD names one.
struct BoardChoice {
  std::unique_ptr<Board> board;
  std::string problem;
};
[[nodiscard]] BoardChoice choose_board(bool simulated, const std::string& instance,
                                       const std::string& boot);

}  // namespace berth
