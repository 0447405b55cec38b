#include "core/classify.hpp"

#include <algorithm>
#include <csignal>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace berth {
namespace {

/// Where a message does not say enough, others must hold so much of a card to be to blame.
constexpr Bytes kShareOfIntruders = 20;

std::string memory_text(const Signature& signature, const MemoryFigures& figures, Blame blame) {
  std::string text(signature.says);
  if (!figures.tried) {
    return text;
  }
  text += fmt::format(": asked for {}{}", format_size(*figures.tried),
                      figures.own.value_or(0) > 0 ? " more" : "");
  if (blame == Blame::neighbour) {
    if (figures.free) {
      text += fmt::format(" with {} free", format_size(*figures.free));
    }
    if (figures.others.value_or(0) > 0) {
      text += fmt::format(", others hold {} of its card", format_size(*figures.others));
    }
    return text;
  }
  if (figures.own.value_or(0) > 0) {
    text += figures.total ? fmt::format(" with {} of {} in use by itself",
                                        format_size(*figures.own), format_size(*figures.total))
                          : fmt::format(" with {} in use by itself", format_size(*figures.own));
  } else if (figures.free && figures.total) {
    text +=
        fmt::format(" with {} of {} free", format_size(*figures.free), format_size(*figures.total));
  }
  return text;
}

/// What others held of the card. What the driver has shown while the attempt ran counts more than
/// what the numbers of a message leave unexplained. Where it never showed anybody else, processes
/// that a message names are the job's own: of another rank, or numbered otherwise in a container.
std::optional<Bytes> held_by_others(const MemoryFigures& figures, const Evidence& evidence) {
  const auto named = figures.guessed ? std::nullopt : figures.others;
  if (evidence.company && (*evidence.company == 0 || !named)) {
    return evidence.company;
  }
  if (!figures.others && !evidence.intruders) {
    return std::nullopt;
  }
  // A message does not tell those who keep to what they were promised from the others.
  const Bytes told = figures.others.value_or(0);
  return std::max(told - std::min(told, evidence.fellows), evidence.intruders.value_or(0));
}

/// By the message's own numbers, if they are enough.
std::optional<Blame> blame_by_figures(const Finding& finding, const Evidence& evidence) {
  const MemoryFigures& figures = *finding.figures;
  const auto needed = finding.needed();
  if (!needed || !figures.others) {
    return std::nullopt;
  }
  const auto total = figures.total ? figures.total : evidence.card;
  const Bytes promised = evidence.claim > 0 ? evidence.claim : total.value_or(0);
  if (promised == 0) {
    return std::nullopt;
  }
  if (*needed > promised || *figures.others == 0) {
    return Blame::own;
  }
  if (figures.free && figures.tried) {
    // Without them there would have been enough.
    return *figures.tried <= *figures.free + *figures.others ? Blame::neighbour : Blame::own;
  }
  // It asked for less than it was promised, and nobody says how much was left. Who shares a card
  // lost some of its promise only if the rest of the card is smaller; who has it whole shares it
  // with strangers who are small enough not to matter.
  if (evidence.claim > 0 && total && *total < evidence.claim + *figures.others + figures.fellows) {
    return Blame::neighbour;
  }
  return std::nullopt;
}

/// By what was seen on the card.
Blame blame_by_sight(const Evidence& evidence) {
  const Bytes intruders = evidence.intruders.value_or(0);
  const bool beyond_its_claim = evidence.claim > 0 && evidence.peak.value_or(0) >= evidence.claim;
  const bool crowded = intruders > 0 && intruders >= evidence.card.value_or(0) / kShareOfIntruders;
  return crowded && !beyond_its_claim ? Blame::neighbour : Blame::own;
}

Finding out_of_gpu_memory(const Sighting& sighting, const Evidence& evidence) {
  Finding finding;
  finding.failure = FailureClass::gpu_oom;
  finding.figures = read_figures(sighting.line);
  finding.figures->others = held_by_others(*finding.figures, evidence);
  finding.figures->fellows = evidence.fellows;
  const auto by_figures = blame_by_figures(finding, evidence);
  finding.blame = by_figures ? *by_figures : blame_by_sight(evidence);
  finding.what = memory_text(*sighting.signature, *finding.figures, finding.blame);
  return finding;
}

/// It says so itself; its log may have the numbers.
Finding reported_out_of_gpu_memory(const Verdict& verdict, const Evidence& evidence) {
  const auto sighting = find_signature(evidence.log_end);
  if (sighting && (sighting->signature->symptom == Symptom::gpu_memory ||
                   sighting->signature->symptom == Symptom::gpu_memory_if)) {
    return out_of_gpu_memory(*sighting, evidence);
  }
  return {FailureClass::gpu_oom, blame_by_sight(evidence), verdict.message};
}

Finding by_signature(const Sighting& sighting, const Verdict& verdict, const Evidence& evidence) {
  Finding finding;
  finding.what = fmt::format("{} ({})", sighting.signature->says, verdict.message);
  switch (sighting.signature->symptom) {
    case Symptom::gpu_memory:
    case Symptom::gpu_memory_if:
      return out_of_gpu_memory(sighting, evidence);
    case Symptom::host_memory:
      finding.failure = FailureClass::host_oom;
      break;
    case Symptom::on_chip:
    case Symptom::code_bug:
      finding.blame = Blame::code_bug;
      break;
    case Symptom::hardware:
    case Symptom::no_device:
      // Without a card of its own it cannot tell anything of one.
      if (evidence.uses_gpus) {
        finding.failure = FailureClass::gpu_lost;
        finding.blame = Blame::hardware;
        finding.drain = sighting.signature->symptom == Symptom::hardware;
      }
      break;
    case Symptom::some_memory:
    case Symptom::aftermath:
      break;
  }
  return finding;
}

bool was_killed(const Verdict& verdict) {
  return verdict.signal == SIGKILL || verdict.exit_code == 128 + SIGKILL;
}

Finding gave_way(GivesWay why, const Verdict& verdict, bool for_own) {
  switch (why) {
    case GivesWay::preempted:
      return {FailureClass::preempted, Blame::neighbour, "gave way to a job of higher priority"};
    case GivesWay::stranger:
      return {FailureClass::preempted, Blame::neighbour,
              for_own ? "gave way to your own process on its card"
                      : "gave way to somebody else who works on its card"};
    case GivesWay::gpu_lost:
    case GivesWay::parked:  // which is no way to end
      break;
  }
  return {
      FailureClass::gpu_lost, Blame::hardware,
      verdict.killed ? "its card is gone" : fmt::format("its card is gone ({})", verdict.message)};
}

}  // namespace

std::string_view to_string(Blame blame) {
  switch (blame) {
    case Blame::own:
      return "own";
    case Blame::code_bug:
      return "code_bug";
    case Blame::neighbour:
      return "neighbour";
    case Blame::hardware:
      return "hardware";
  }
  return "?";
}

std::optional<Bytes> Finding::needed() const {
  if (!figures || !figures->tried) {
    return std::nullopt;
  }
  if (figures->own) {
    return *figures->own + *figures->tried;
  }
  // Of a card with nobody else on it, what is not free is the program's own.
  if (figures->total && figures->free && figures->others.value_or(0) == 0) {
    const Bytes not_its_own = *figures->free + figures->fellows;
    return *figures->total - std::min(not_its_own, *figures->total) + *figures->tried;
  }
  return figures->others ? figures->tried : std::nullopt;
}

Finding classify(const Verdict& verdict, const Evidence& evidence) {
  if (evidence.gives_way) {
    return gave_way(*evidence.gives_way, verdict, evidence.for_own);
  }
  const FailureClass told = verdict.failure.value_or(FailureClass::exit);
  if (told == FailureClass::node_lost || told == FailureClass::gpu_lost) {
    return {told, Blame::hardware, verdict.message};
  }
  if (told == FailureClass::preempted) {
    return {told, Blame::neighbour, verdict.message};
  }
  if (told == FailureClass::cannot_start) {
    return {told, Blame::code_bug, verdict.message};
  }
  if (told == FailureClass::gpu_oom) {
    return reported_out_of_gpu_memory(verdict, evidence);
  }
  if (told != FailureClass::exit) {
    return {told, Blame::own, verdict.message};
  }
  if (!evidence.card_trouble.empty()) {
    return {FailureClass::gpu_lost, Blame::hardware,
            fmt::format("{} ({})", evidence.card_trouble, verdict.message)};
  }
  if (const auto sighting = find_signature(evidence.log_end)) {
    return by_signature(*sighting, verdict, evidence);
  }
  if (!evidence.xids.empty()) {
    return {FailureClass::exit, Blame::code_bug,
            fmt::format("its code did something wrong on the GPU, says the driver: XID {} ({})",
                        fmt::join(evidence.xids, ", "), verdict.message)};
  }
  if (was_killed(verdict) && !verdict.killed) {
    return {FailureClass::exit, Blame::own,
            fmt::format("{}; by whom is not known, perhaps by the kernel for lack of memory",
                        verdict.message)};
  }
  return {FailureClass::exit, Blame::own, verdict.message};
}

Beside look_beside(const Gpu& gpu, AttemptId attempt) {
  Beside beside;
  beside.hidden = !gpu.facts.processes;
  std::map<AttemptId, Bytes> held;
  for (const GpuProcess& process : gpu.facts.processes.value_or(std::vector<GpuProcess>{})) {
    if (process.attempt != attempt) {
      beside.hidden = beside.hidden || !process.memory;
      held[process.attempt] += process.memory.value_or(0);
    }
  }
  for (const Claim& claim : gpu.claims) {
    if (claim.attempt == attempt) {
      continue;
    }
    // What it has used it may want again, and gets.
    Bytes& its = held[claim.attempt];
    its = std::max(its, claim.peak);
    const Bytes promised = claim.memory == 0 ? its : std::min(its, claim.memory);
    beside.promised += promised;
    its -= promised;
  }
  for (const auto& [id, bytes] : held) {
    beside.beyond += bytes;
  }
  return beside;
}

Evidence gather_evidence(const State& state, const Attempt& attempt, std::string_view log_end) {
  Evidence evidence;
  evidence.log_end = log_end;
  if (attempt.leaves()) {
    evidence.gives_way = attempt.gives_way;
    evidence.for_own = attempt.for_own;
  }
  evidence.xids = attempt.xids;
  evidence.uses_gpus = !attempt.gpus.empty();
  evidence.claim = attempt.gpu_memory;
  evidence.company = attempt.company_hidden ? std::nullopt : attempt.company;
  evidence.card_trouble = attempt.sick_card;
  for (const std::string& uuid : attempt.gpus) {
    const Gpu* gpu = state.gpu(uuid);
    if (gpu == nullptr) {
      continue;
    }
    if (gpu->known && !gpu->facts.trouble.empty() && evidence.card_trouble.empty()) {
      evidence.card_trouble = fmt::format("GPU {}: {}", gpu->facts.index, gpu->facts.trouble);
    }
    if (const auto total = gpu->facts.memory_total) {
      evidence.card = std::min(evidence.card.value_or(*total), *total);
    }
    for (const Claim& claim : gpu->claims) {
      if (claim.attempt == attempt.id) {
        evidence.peak = std::max(evidence.peak.value_or(0), claim.peak);
      }
    }
    if (gpu->facts.processes) {
      const Beside beside = look_beside(*gpu, attempt.id);
      evidence.intruders = std::max(evidence.intruders.value_or(0), beside.beyond);
      evidence.fellows = std::max(evidence.fellows, beside.promised);
    }
  }
  return evidence;
}

}  // namespace berth
