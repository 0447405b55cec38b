#include "daemon/board_watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/random.hpp"
#include "core/room.hpp"
#include "daemon/process_notes.hpp"

namespace berth {
namespace {

constexpr int kRefusalMinMs = 20;
constexpr int kRefusalMaxMs = 200;

Millis random_delay() {
  thread_local std::minstd_rand random{random_number()};
  return Millis(std::uniform_int_distribution<int>(kRefusalMinMs, kRefusalMaxMs)(random));
}

/// Who else is on the cards. A process whose owner cannot be told may be anybody's.
CardUsers users_of_cards(const State& state) {
  CardUsers users;
  for (const Gpu& gpu : state.gpus) {
    CardUse& use = users[gpu.facts.uuid];
    use.seen = gpu.sampled;
    auto& on_card = use.users;
    if (!gpu.known || !gpu.facts.processes) {
      continue;
    }
    on_card.emplace();
    for (const GpuProcess& process : *gpu.facts.processes) {
      if (process.attempt) {
        continue;
      }
      if (!process.uid) {
        on_card.reset();
        break;
      }
      on_card->insert(*process.uid);
    }
  }
  return users;
}

bool gpu_job_waits(const State& state) {
  return std::ranges::any_of(state.ready.heads(), [&](const auto& heads) {
    return state.shapes.at(heads.first).key.request.gpus.max > 0;
  });
}

Board::Kept claims_of(const State& state) {
  Board::Kept claims;
  for (const Gpu& gpu : state.gpus) {
    for (const Claim& claim : gpu.claims) {
      claims.emplace(gpu.facts.uuid, claim.attempt);
    }
  }
  return claims;
}

std::string_view describe(ClaimState state) {
  switch (state) {
    case ClaimState::waiting:
      return "was ours, and now it is the turn of";
    case ClaimState::wanted:
      return "is wanted at the same time by";
    case ClaimState::held:
      return "is held by";
  }
  return "";
}

}  // namespace

BoardWatch::BoardWatch(Loop& loop, std::unique_ptr<Board> board, Hooks hooks)
    : loop_(loop), board_(std::move(board)), hooks_(std::move(hooks)), worker_("board") {}

BoardWatch::~BoardWatch() {
  worker_.post([this] { board_->leave(); });
}

void BoardWatch::note(const Status& status) {
  const std::string problem = status ? std::string() : status.error().message;
  if (problem != std::exchange(problem_, problem) && !problem.empty()) {
    loop_.post([this, problem] { hooks_.warn(problem); });
  }
}

std::string BoardWatch::owner(const CardHolder& holder) {
  if (holder.uid == ::geteuid()) {
    return "another berth of yours";
  }
  auto [name, fresh] = names_.try_emplace(holder.uid);
  if (fresh) {
    name->second = user_name(holder.uid);
  }
  return "the berth of user " + name->second;
}

BoardWatch::Held BoardWatch::name_owners(const std::map<std::string, CardHolder>& holders) {
  Held held;
  for (const auto& [gpu, holder] : holders) {
    held.emplace(gpu, owner(holder));
  }
  return held;
}

void BoardWatch::begin() {
  std::vector<BoardClaim> running;
  const Millis now = read_clock().mono;
  kept_ = claims_of(hooks_.state());
  for (const auto& [gpu, attempt] : kept_) {
    const auto& attempts = hooks_.state().attempts;
    const auto found = attempts.find(attempt);
    running.push_back({gpu, attempt, found == attempts.end() ? 0 : found->second.gpu_memory, now,
                       ClaimState::held});
  }
  worker_.post([this, running = std::move(running)] { note(board_->begin(running)); });
}

void BoardWatch::ask(const effect::Start& start, Answer answer) {
  const auto& attempts = hooks_.state().attempts;
  const auto attempt = attempts.find(start.attempt);
  const Bytes memory = attempt == attempts.end() ? 0 : attempt->second.gpu_memory;
  worker_.post(
      [this, start, memory, users = users_of_cards(hooks_.state()), answer = std::move(answer)] {
        auto asked = board_->ask(start.attempt, memory, start.gpus, users);
        note(asked ? Status{} : std::unexpected(asked.error()));
        if (asked && !*asked) {
          loop_.post([answer] { answer(std::nullopt); });
          return;
        }
        std::string why;
        Held held;
        if (asked) {
          const CardHolder& holder = **asked;
          const auto card = std::ranges::find(start.gpus, holder.gpu) - start.gpus.begin();
          why = fmt::format("GPU {} {} {}", start.gpu_indices[static_cast<std::size_t>(card)],
                            describe(holder.state), owner(holder));
          held = name_owners(board_->others(users).value_or(std::map<std::string, CardHolder>{}));
        } else {
          // Whoever cannot read what others say does not know that the card is free.
          why = asked.error().message;
          for (const std::string& gpu : start.gpus) {
            held[gpu] = "nobody knows whom: " + why;
          }
        }
        loop_.post([this, id = start.attempt, why, held = std::move(held), answer] {
          refuse(id, why, held, answer);
        });
      });
}

void BoardWatch::refuse(AttemptId attempt, std::string why, Held held, const Answer& answer) {
  tell(std::move(held));
  refusals_[attempt] = loop_.after(random_delay(), [this, attempt, why = std::move(why), answer] {
    const auto ending = refusals_.extract(attempt);
    answer(why);
  });
}

void BoardWatch::tell(Held held) {
  if (held != hooks_.state().board) {
    hooks_.emit(event::BoardRead{std::move(held)});
  }
}

void BoardWatch::queue_up(const Held& held) {
  if (held.empty()) {
    return;
  }
  std::set<std::string> cards = awaited_cards(hooks_.state(), read_clock());
  std::erase_if(cards, [&](const std::string& gpu) { return !held.contains(gpu); });
  if (!cards.empty()) {
    worker_.post([this, cards = std::move(cards)] { note(board_->queue_for(cards)); });
  }
}

void BoardWatch::claims_changed() {
  Board::Kept claims = claims_of(hooks_.state());
  if (claims == kept_) {
    return;
  }
  kept_ = claims;
  worker_.post([this, claims = std::move(claims)] { note(board_->keep_only(claims)); });
}

void BoardWatch::look(std::function<void()> then) {
  worker_.post([this, users = users_of_cards(hooks_.state()), then = std::move(then)]() mutable {
    const auto others = board_->others(users);
    std::optional<Held> held;
    if (others) {
      held = name_owners(*others);
    }
    loop_.post([this, held = std::move(held), then = std::move(then)] {
      if (held) {
        tell(*held);
      }
      then();
    });
  });
}

void BoardWatch::sampled() {
  const State& state = hooks_.state();
  const bool waits = gpu_job_waits(state);
  const bool matters = waits || !state.board.empty();
  if (reading_ || (!matters && kept_.empty())) {
    return;
  }
  reading_ = true;
  worker_.post([this, waits, matters, kept = kept_, users = users_of_cards(state)] {
    // Said again if somebody has tidied it away.
    note(board_->keep_only(kept, waits));
    auto others = matters ? board_->others(users) : std::map<std::string, CardHolder>{};
    std::optional<Held> held;
    if (others) {
      held = name_owners(*others);
    }
    loop_.post([this, matters, held = std::move(held)] {
      reading_ = false;
      if (matters && held) {
        tell(*held);
        queue_up(*held);
      }
    });
  });
}

BoardChoice choose_board(bool simulated, const std::string& instance, const std::string& boot) {
  const char* given = std::getenv("BERTH_BOARD");
  if (simulated && (given == nullptr || *given == '\0')) {
    return {};
  }
  auto directory = BoardDirectory::find();
  if (!directory) {
    return {nullptr, directory.error().message};
  }
  if (!*directory) {
    return {};
  }
  BoardConfig config;
  config.directory = **directory;
  config.instance = instance;
  config.boot = boot;
  config.uid = ::geteuid();
  config.now = [] { return read_clock().mono; };
  if (const char* lapse = std::getenv("BERTH_TEST_BOARD_LAPSE_MS")) {
    config.lapse = Millis(std::max(1, std::atoi(lapse)));
  }
  auto board = Board::open(std::move(config));
  if (!board) {
    return {nullptr, board.error().message};
  }
  return {std::move(*board), {}};
}

}  // namespace berth
