#include "board/board.hpp"

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <tuple>

#include <fmt/format.h>

#include "base/random.hpp"

namespace berth {
namespace {

/// How often the first of two who meet looks whether the other has withdrawn.
constexpr int kLooks = 20;
constexpr std::chrono::microseconds kPauseFirst{200};
constexpr std::chrono::microseconds kPauseMost{15'000};

/// Short at first: the other has seen us, or is about to. Random, so that two do not keep step.
void pause_before(int look) {
  thread_local std::minstd_rand random{random_number()};
  const auto most = std::min(kPauseMost, kPauseFirst * (1 << std::min(look, 10)));
  std::uniform_int_distribution<std::int64_t> micros(most.count() / 2, most.count());
  std::this_thread::sleep_for(std::chrono::microseconds(micros(random)));
}

}  // namespace

Board::Board(BoardConfig config, BoardDirectory directory)
    : config_(std::move(config)),
      directory_(std::move(directory)),
      place_(directory_, config_.uid, config_.instance) {}

Result<std::unique_ptr<Board>> Board::open(BoardConfig config) {
  if (!is_board_word(config.instance) || !is_board_word(config.boot)) {
    return fail(ErrorCode::invalid, "the claims board needs an instance and a boot by name");
  }
  TRY_ASSIGN(BoardDirectory directory, BoardDirectory::open(config.directory));
  return std::unique_ptr<Board>(new Board(std::move(config), std::move(directory)));
}

Status Board::publish() {
  BoardEntry entry{config_.uid, config_.instance, config_.boot, claims_};
  for (const auto& [gpu, since] : waits_) {
    entry.claims.push_back({gpu, AttemptId{}, 0, since, ClaimState::waiting});
  }
  const Status said = place_.publish(entry);
  unsaid_ = !said;
  return said;
}

bool Board::mine(const BoardEntry& entry) const {
  return entry.uid == config_.uid && entry.instance == config_.instance;
}

Status Board::begin(const std::vector<BoardClaim>& running) {
  claims_ = running;
  for (BoardClaim& claim : claims_) {
    claim.state = ClaimState::held;
  }
  return publish();
}

bool Board::counts(const FoundEntry& found, const BoardClaim& claim, const CardUsers& users) {
  const BoardEntry& entry = found.entry;
  if (entry.boot != config_.boot) {
    return false;
  }
  if (claim.state == ClaimState::waiting && !has_its_turn(claim)) {
    return false;
  }
  if (claim.state != ClaimState::held) {
    return directory_.answers(found);
  }
  const auto use = users.find(claim.gpu);
  if (use == users.end() || !use->second.users) {
    return true;
  }
  const Millis seen = use->second.seen;
  Millis& busy = busy_[{found.name, claim.gpu}];
  if (use->second.users->contains(entry.uid)) {
    busy = std::max(busy, seen);
    return true;
  }
  // A daemon that is gone cannot start anything more; what it started just now may still come.
  return seen - claim.since < config_.lapse ||
         (seen - busy < config_.lapse && directory_.answers(found));
}

bool Board::has_its_turn(const BoardClaim& waiting) const {
  const auto ours = released_.find(waiting.gpu);
  return ours != released_.end() && waiting.since < ours->second &&
         config_.now() - ours->second < config_.turn;
}

bool Board::before_us(const BoardEntry& entry, const BoardClaim& claim, Millis since) const {
  return std::tie(claim.since, entry.uid, entry.instance) <
         std::tie(since, config_.uid, config_.instance);
}

Board::Conflict Board::conflict(const std::vector<FoundEntry>& found,
                                const std::vector<std::string>& gpus, Millis since,
                                const CardUsers& users, CardHolder& who) {
  Conflict worst = Conflict::none;
  for (const FoundEntry& other : found) {
    if (mine(other.entry)) {
      continue;
    }
    for (const BoardClaim& claim : other.entry.claims) {
      if (std::ranges::find(gpus, claim.gpu) == gpus.end() || !counts(other, claim, users)) {
        continue;
      }
      const bool stands = claim.state != ClaimState::wanted || before_us(other.entry, claim, since);
      if (worst == Conflict::none || stands) {
        worst = stands ? Conflict::stands : Conflict::waits_for_us;
        who = {claim.gpu, other.entry.uid, other.entry.instance, claim.state};
      }
      if (stands) {
        return worst;
      }
    }
  }
  return worst;
}

void Board::withdraw(AttemptId attempt) {
  std::erase_if(claims_, [&](const BoardClaim& claim) { return claim.attempt == attempt; });
  // If it cannot be taken back now, the next publish() does; until then others see what we do not
  // mean, which keeps them waiting and nothing worse.
  [[maybe_unused]] const Status ignored = publish();
}

void Board::wait_for(const std::vector<std::string>& gpus, AttemptId attempt) {
  for (const std::string& gpu : gpus) {
    waits_.try_emplace(gpu, config_.now());
  }
  withdraw(attempt);
}

Result<std::optional<CardHolder>> Board::ask(AttemptId attempt, Bytes memory,
                                             const std::vector<std::string>& gpus,
                                             const CardUsers& users) {
  if (const auto odd = std::ranges::find_if_not(gpus, is_card_name); odd != gpus.end()) {
    return fail(ErrorCode::invalid, fmt::format("'{}' is no name for a card", *odd));
  }
  const Millis since = config_.now();
  for (const std::string& gpu : gpus) {
    claims_.push_back({gpu, attempt, memory, since, ClaimState::wanted});
  }
  if (Status said = publish(); !said) {
    withdraw(attempt);
    return std::unexpected(said.error());
  }
  CardHolder who;
  for (int look = 0; look < kLooks; ++look) {
    // Only what is read after our intent stands there counts; see README.md.
    auto found = directory_.read();
    if (!found) {
      withdraw(attempt);
      return std::unexpected(found.error());
    }
    const Conflict met = conflict(*found, gpus, since, users, who);
    if (met == Conflict::none) {
      for (BoardClaim& claim : claims_) {
        claim.state = claim.attempt == attempt ? ClaimState::held : claim.state;
      }
      waits_.clear();
      if (Status said = publish(); !said) {
        withdraw(attempt);
        return std::unexpected(said.error());
      }
      return std::nullopt;
    }
    if (met == Conflict::stands) {
      break;
    }
    pause_before(look);
  }
  wait_for(gpus, attempt);
  return who;
}

Status Board::keep_only(const Kept& kept, bool waiting) {
  bool changed = !waiting && !waits_.empty();
  std::erase_if(claims_, [&](const BoardClaim& claim) {
    if (kept.contains({claim.gpu, claim.attempt})) {
      return false;
    }
    released_[claim.gpu] = config_.now();
    changed = true;
    return true;
  });
  if (!waiting) {
    waits_.clear();
  }
  return changed || unsaid_ || place_.lost() ? publish() : Status{};
}

Status Board::queue_for(const std::set<std::string>& gpus) {
  bool changed = false;
  for (const std::string& gpu : gpus) {
    changed = (is_card_name(gpu) && waits_.try_emplace(gpu, config_.now()).second) || changed;
  }
  return changed ? publish() : Status{};
}

Result<std::map<std::string, CardHolder>> Board::others(const CardUsers& users) {
  TRY_ASSIGN(const std::vector<FoundEntry> found, directory_.read());
  std::map<std::string, CardHolder> result;
  decltype(busy_) still;
  for (const FoundEntry& other : found) {
    if (mine(other.entry)) {
      continue;
    }
    for (const BoardClaim& claim : other.entry.claims) {
      if (counts(other, claim, users)) {
        CardHolder& holder = result[claim.gpu];
        if (holder.gpu.empty() || claim.state == ClaimState::held) {
          holder = {claim.gpu, other.entry.uid, other.entry.instance, claim.state};
        }
      }
      if (const auto busy = busy_.find({other.name, claim.gpu}); busy != busy_.end()) {
        still.insert(*busy);
      }
    }
  }
  busy_ = std::move(still);
  return result;
}

void Board::leave() {
  waits_.clear();
  if (claims_.empty()) {
    place_.leave();
  } else {
    [[maybe_unused]] const Status ignored = publish();  // claims that nobody waits behind
  }
}

}  // namespace berth
