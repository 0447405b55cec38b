// Every rule with a fixed name.

#include <array>

#include "core/rule_values.hpp"

namespace berth {
namespace {

using namespace rule_values;  // NOLINT(google-build-using-namespace): the table is about nothing
                              // else

constexpr std::array kLeftModes = {std::pair{LeftMode::last, std::string_view("last")},
                                   std::pair{LeftMode::any, std::string_view("any")}};
constexpr std::array kStrategies = {
    std::pair{Strategy::most_free, std::string_view("most_free")},
    std::pair{Strategy::least_utilized, std::string_view("least_utilized")},
    std::pair{Strategy::round_robin, std::string_view("round_robin")},
    std::pair{Strategy::best_fit, std::string_view("best_fit")},
    std::pair{Strategy::pack, std::string_view("pack")},
    std::pair{Strategy::spread, std::string_view("spread")},
    std::pair{Strategy::memory_save, std::string_view("memory_save")},
    std::pair{Strategy::fragmentation, std::string_view("fragmentation")},
    std::pair{Strategy::memory_spend, std::string_view("memory_spend")}};
constexpr std::array kOrders = {std::pair{Order::fifo, std::string_view("fifo")},
                                std::pair{Order::random, std::string_view("random")},
                                std::pair{Order::largest_first, std::string_view("largest_first")}};
constexpr std::array kForeign = {std::pair{Foreign::grade, std::string_view("grade")},
                                 std::pair{Foreign::ignore, std::string_view("ignore")},
                                 std::pair{Foreign::share, std::string_view("share")},
                                 std::pair{Foreign::wait, std::string_view("wait")}};
constexpr std::array kForeignOwn = {std::pair{ForeignOwn::as_others, std::string_view("as_others")},
                                    std::pair{ForeignOwn::ignore, std::string_view("ignore")},
                                    std::pair{ForeignOwn::wait, std::string_view("wait")}};
constexpr std::array kGiveWay = {std::pair{GiveWay::no, std::string_view("no")},
                                 std::pair{GiveWay::requeue, std::string_view("requeue")},
                                 std::pair{GiveWay::pause, std::string_view("pause")}};
constexpr std::array kBackfill = {std::pair{Backfill::easy, std::string_view("easy")},
                                  std::pair{Backfill::any, std::string_view("any")},
                                  std::pair{Backfill::none, std::string_view("none")}};

constexpr std::array kBackoff = {std::pair{Backoff::steps, std::string_view("steps")},
                                 std::pair{Backoff::exponential, std::string_view("exponential")}};

std::string get_min_free(const Rules& rules) {
  return rules.min_free_memory ? exact_size(*rules.min_free_memory) : "auto";
}
Status set_min_free(Rules& rules, std::string_view text) {
  if (text == "auto") {
    rules.min_free_memory.reset();
    return {};
  }
  const auto size = parse_size(text);
  if (!size) {
    return fail(ErrorCode::invalid, size.error().message + "; or give `auto`");
  }
  rules.min_free_memory = *size;
  return {};
}

std::string get_gpus(const Rules& rules) {
  return rules.gpus.empty() ? "all" : fmt::format("{}", fmt::join(rules.gpus, ","));
}
/// "all", or indices, ranges of them and UUIDs between commas: "0,2-3,GPU-4f1c".
Status set_gpus(Rules& rules, std::string_view text) {
  std::vector<std::string> gpus;
  if (text != "all") {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      const std::string_view part = text.substr(begin, comma - begin);
      begin = comma + 1;
      const std::size_t dash = part.find('-');
      const bool number = !part.empty() && part.front() >= '0' && part.front() <= '9';
      if (part.empty() || (!number && (dash == std::string_view::npos ||
                                       part.find_first_of(" \t=") != std::string_view::npos))) {
        return fail(ErrorCode::invalid,
                    fmt::format("expected all, or indices and UUIDs between commas as in 0,2-3, "
                                "got '{}'",
                                text));
      }
      if (!number) {
        gpus.emplace_back(part);
        continue;
      }
      constexpr std::uint32_t kMost = 1023;
      TRY_ASSIGN(const auto first, whole_number<std::uint32_t>(part.substr(0, dash), kMost));
      std::uint32_t last = first;
      if (dash != std::string_view::npos) {
        TRY_ASSIGN(last, whole_number<std::uint32_t>(part.substr(dash + 1), kMost));
      }
      if (last < first) {  // no card at all would read as every card
        return fail(ErrorCode::invalid,
                    fmt::format("'{}' is no range; write {}-{}", part, last, first));
      }
      for (std::uint32_t index = first; index <= last; ++index) {
        gpus.push_back(fmt::format("{}", index));
      }
    }
  }
  rules.gpus = std::move(gpus);
  return {};
}

constexpr std::array kDefinitions = {
    RuleDef{"max_concurrent", "N", RuleScope::batch, "jobs that run at once; 0: any number",
            get_number<&Rules::max_concurrent>, set_number<&Rules::max_concurrent>},
    RuleDef{"min_free_memory", "SIZE", RuleScope::any,
            "memory that must be free on a card for a job that does not say what it needs; auto: "
            "8000 MiB or 90 % of the card, the smaller",
            get_min_free, set_min_free},
    RuleDef{"max_utilization", "PERCENT", RuleScope::any,
            "a card that others keep busier than this is left alone",
            get_number<&Rules::max_utilization>, set_percent<&Rules::max_utilization>},
    RuleDef{"memory_margin", "SIZE", RuleScope::any,
            "kept free on every card beyond what jobs ask for", get_size<&Rules::memory_margin>,
            set_size<&Rules::memory_margin>},
    RuleDef{"keep_gpu_memory", "PERCENT", RuleScope::any,
            "no job is added to a card of which more than this share is in use; 100: no limit",
            get_number<&Rules::keep_gpu_memory>, set_percent<&Rules::keep_gpu_memory>},
    RuleDef{"keep_host_memory", "SIZE", RuleScope::any,
            "host memory that must stay available when a job starts; 0: none",
            get_size<&Rules::keep_host_memory>, set_size<&Rules::keep_host_memory>},
    RuleDef{"gpus", "LIST", RuleScope::any,
            "allowed cards, by index or UUID, as in 0,2-3; all: every card", get_gpus, set_gpus},
    RuleDef{"gpu_left", "N", RuleScope::any, "cards left to others", get_number<&Rules::gpu_left>,
            set_number<&Rules::gpu_left>},
    RuleDef{
        "gpu_left_mode", "last|any", RuleScope::any,
        "which cards gpu_left leaves to others: the last ones, or any that are free, so many at "
        "all times",
        get_choice<kLeftModes, &Rules::gpu_left_mode>,
        set_choice<kLeftModes, &Rules::gpu_left_mode>},
    RuleDef{"min_gpu", "N", RuleScope::batch,
            "the quota of cards in use at once, min(max_gpu, max(min_gpu, available - gpu_left)), "
            "is at least this",
            get_number<&Rules::min_gpu>, set_number<&Rules::min_gpu>},
    RuleDef{"max_gpu", "N", RuleScope::batch,
            "the quota of cards in use at once, see min_gpu, is at most this; 0: no limit",
            get_number<&Rules::max_gpu>, set_number<&Rules::max_gpu>},
    RuleDef{"strategy",
            "most_free|least_utilized|round_robin|best_fit|pack|spread|memory_save|fragmentation|"
            "memory_spend",
            RuleScope::any, "which of the cards that fit is taken",
            get_choice<kStrategies, &Rules::strategy>, set_choice<kStrategies, &Rules::strategy>},
    RuleDef{
        "topology", "BOOL", RuleScope::any,
        "several cards of one job are taken close to each other: NVLink, PCIe switch, NUMA node",
        get_bool<&Rules::topology>, set_bool<&Rules::topology>},
    RuleDef{"maximize_resource_utilization", "BOOL", RuleScope::any,
            "several of one's own jobs may share a card; false: one's own processes keep it",
            get_bool<&Rules::maximize_resource_utilization>,
            set_bool<&Rules::maximize_resource_utilization>},
    RuleDef{
        "shrink_claims", "TIME", RuleScope::any,
        "a job whose memory has not grown for so long keeps only the most it has used; 0: never",
        get_time<&Rules::shrink_claims>, set_time<&Rules::shrink_claims>},
    RuleDef{"foreign.policy", "grade|ignore|share|wait", RuleScope::any,
            "what processes outside berth mean: judged one by one, only their memory counts, only "
            "busy ones are in the way, any is in the way",
            get_choice<kForeign, &Rules::foreign, &ForeignRules::policy>,
            set_choice<kForeign, &Rules::foreign, &ForeignRules::policy>},
    RuleDef{"foreign.own", "as_others|ignore|wait", RuleScope::any,
            "what your own processes outside berth mean: what others' would, but no running job "
            "gives way to them; only their memory counts; any is in the way",
            get_choice<kForeignOwn, &Rules::foreign, &ForeignRules::own>,
            set_choice<kForeignOwn, &Rules::foreign, &ForeignRules::own>},
    RuleDef{"foreign.small_memory", "SIZE", RuleScope::any,
            "with foreign.policy grade: a process that holds no more than this and idles is passed "
            "over",
            get_size<&Rules::foreign, &ForeignRules::small_memory>,
            set_size<&Rules::foreign, &ForeignRules::small_memory>},
    RuleDef{"foreign.idle_utilization", "PERCENT", RuleScope::any,
            "with foreign.policy grade: a process idles when it keeps the card no busier than this",
            get_number<&Rules::foreign, &ForeignRules::idle_utilization>,
            set_percent<&Rules::foreign, &ForeignRules::idle_utilization>},
    RuleDef{"foreign.young", "TIME", RuleScope::any,
            "a process younger than this may be about to begin and is waited for",
            get_time<&Rules::foreign, &ForeignRules::young>,
            set_time<&Rules::foreign, &ForeignRules::young>},
    RuleDef{"opportunistic", "no|requeue|pause", RuleScope::any,
            "what a running job does when a stranger comes to its card",
            get_choice<kGiveWay, &Rules::opportunistic>,
            set_choice<kGiveWay, &Rules::opportunistic>},
    RuleDef{"quiet_time", "TIME", RuleScope::any,
            "a card given up to a stranger is used again after so long without one",
            get_time<&Rules::quiet_time>, set_time<&Rules::quiet_time>},
    RuleDef{"preemptible", "BOOL", RuleScope::any,
            "jobs of higher priority may end it; it waits again, at no cost",
            get_bool<&Rules::preemptible>, set_bool<&Rules::preemptible>},
    RuleDef{"cpu_affinity", "BOOL", RuleScope::any,
            "a job runs on the processors next to its cards", get_bool<&Rules::cpu_affinity>,
            set_bool<&Rules::cpu_affinity>},
    RuleDef{"order", "fifo|random|largest_first", RuleScope::batch,
            "the order of jobs of equal priority and share", get_choice<kOrders, &Rules::order>,
            set_choice<kOrders, &Rules::order>},
    RuleDef{"seed", "N", RuleScope::batch, "with order random: the seed of that order",
            get_number<&Rules::seed>, set_number<&Rules::seed>},
    RuleDef{"fair_share", "BOOL", RuleScope::instance,
            "users and batches that have used fewer GPUs of late go first",
            get_bool<&Rules::fair_share>, set_bool<&Rules::fair_share>},
    RuleDef{"half_life", "TIME", RuleScope::instance,
            "with fair_share: after so long the use of GPUs counts half; 0: it never fades",
            get_time<&Rules::half_life>, set_time<&Rules::half_life>},
    RuleDef{"aging", "TIME", RuleScope::instance,
            "a job that has waited so long goes before all others; 0: never",
            get_time<&Rules::aging>, set_time<&Rules::aging>},
    RuleDef{"backfill", "easy|any|none", RuleScope::instance,
            "whether later jobs may overtake one that waits for cards: if that does not delay it, "
            "always, never",
            get_choice<kBackfill, &Rules::backfill>, set_choice<kBackfill, &Rules::backfill>},
    RuleDef{"hold_after", "TIME", RuleScope::instance,
            "cards are kept for a job whose start cannot be foretold once it has waited so long",
            get_time<&Rules::hold_after>, set_time<&Rules::hold_after>},
    RuleDef{
        "max_wait", "TIME", RuleScope::any,
        "a job that others keep from GPUs for so long, and nothing else holds, is cancelled; 0: it "
        "waits for ever",
        get_time<&Rules::max_wait>, set_time<&Rules::max_wait>},
    RuleDef{"retry_config.max_retry_before_backoff", "N", RuleScope::any,
            "with backoff steps: so many retries follow at once, then comes a wait; 0: never",
            get_number<&Rules::retry, &RetryRules::max_retry_before_backoff>,
            set_number<&Rules::retry, &RetryRules::max_retry_before_backoff>},
    RuleDef{"retry_config.backoff_duration", "TIME", RuleScope::any,
            "with backoff steps: how long the wait after so many retries is",
            get_time<&Rules::retry, &RetryRules::backoff_duration>,
            set_time<&Rules::retry, &RetryRules::backoff_duration>},
    RuleDef{"retry_config.backoff", "steps|exponential", RuleScope::any,
            "how the time between retries grows",
            get_choice<kBackoff, &Rules::retry, &RetryRules::backoff>,
            set_choice<kBackoff, &Rules::retry, &RetryRules::backoff>},
    RuleDef{"retry_config.backoff_first", "TIME", RuleScope::any,
            "with backoff exponential: the wait before the first retry",
            get_time<&Rules::retry, &RetryRules::backoff_first>,
            set_time<&Rules::retry, &RetryRules::backoff_first>},
    RuleDef{"retry_config.backoff_factor", "N", RuleScope::any,
            "with backoff exponential: each wait is so many times the one before",
            get_number<&Rules::retry, &RetryRules::backoff_factor>,
            set_positive<&Rules::retry, &RetryRules::backoff_factor>},
    RuleDef{"retry_config.backoff_max", "TIME", RuleScope::any,
            "with backoff exponential: no wait is longer",
            get_time<&Rules::retry, &RetryRules::backoff_max>,
            set_time<&Rules::retry, &RetryRules::backoff_max>},
    RuleDef{"retry_config.jitter", "PERCENT", RuleScope::any,
            "with backoff exponential: waits are up to so much shorter or longer",
            get_number<&Rules::retry, &RetryRules::jitter>,
            set_percent<&Rules::retry, &RetryRules::jitter>},
    RuleDef{"retry_config.not_its_fault", "N", RuleScope::any,
            "retries for what is not the fault of a job, besides its own",
            get_number<&Rules::retry, &RetryRules::not_its_fault>,
            set_number<&Rules::retry, &RetryRules::not_its_fault>},
    RuleDef{"retry_config.raise_memory", "BOOL", RuleScope::any,
            "a job that runs out of GPU memory is tried again with more of it",
            get_bool<&Rules::retry, &RetryRules::raise_memory>,
            set_bool<&Rules::retry, &RetryRules::raise_memory>},
    RuleDef{"retry_config.requeue_on_timeout", "BOOL", RuleScope::any,
            "a job that ran into its time limit waits again, to go on where it was",
            get_bool<&Rules::retry, &RetryRules::requeue_on_timeout>,
            set_bool<&Rules::retry, &RetryRules::requeue_on_timeout>},
    RuleDef{"retry_config.exit", "default|N", RuleScope::any,
            "retries of a job whose command failed, instead of what the job asks for",
            get_limit<&Rules::retry, &RetryRules::exit>,
            set_limit<&Rules::retry, &RetryRules::exit>},
    RuleDef{"retry_config.gpu_oom", "default|N", RuleScope::any,
            "retries of a job that ran out of GPU memory, instead of what the job asks for",
            get_limit<&Rules::retry, &RetryRules::gpu_oom>,
            set_limit<&Rules::retry, &RetryRules::gpu_oom>},
    RuleDef{"retry_config.host_oom", "default|N", RuleScope::any,
            "retries of a job that ran out of host memory, instead of what the job asks for",
            get_limit<&Rules::retry, &RetryRules::host_oom>,
            set_limit<&Rules::retry, &RetryRules::host_oom>},
    RuleDef{"retry_config.timeout", "default|N", RuleScope::any,
            "retries of a job that ran into its time limit, instead of what the job asks for",
            get_limit<&Rules::retry, &RetryRules::timeout>,
            set_limit<&Rules::retry, &RetryRules::timeout>},
    RuleDef{"retry_config.cannot_start", "default|N", RuleScope::any,
            "retries of a job whose command could not be started, instead of what the job asks for",
            get_limit<&Rules::retry, &RetryRules::cannot_start>,
            set_limit<&Rules::retry, &RetryRules::cannot_start>},
    RuleDef{"retry_config.gpu_lost", "default|N", RuleScope::any,
            "retries of a job whose card failed, instead of not_its_fault",
            get_limit<&Rules::retry, &RetryRules::gpu_lost>,
            set_limit<&Rules::retry, &RetryRules::gpu_lost>},
    RuleDef{"retry_config.node_lost", "default|N", RuleScope::any,
            "retries of a job whose machine went down, instead of not_its_fault",
            get_limit<&Rules::retry, &RetryRules::node_lost>,
            set_limit<&Rules::retry, &RetryRules::node_lost>},
    RuleDef{"retry_config.preempted", "default|N", RuleScope::any,
            "how often a job waits again that gave way, if not for ever",
            get_limit<&Rules::retry, &RetryRules::preempted>,
            set_limit<&Rules::retry, &RetryRules::preempted>},
    RuleDef{"sample_age_max", "TIME", RuleScope::any,
            "the greatest age of a look at the GPUs that still decides something",
            get_time<&Rules::sample_age_max>, set_time<&Rules::sample_age_max>},
    RuleDef{"keep_finished", "TIME", RuleScope::instance,
            "finished jobs are kept this long; 0: for ever", get_time<&Rules::keep_finished>,
            set_time<&Rules::keep_finished>},
    RuleDef{"keep_jobs", "N", RuleScope::instance,
            "so many finished jobs are kept, the newest; 0: all", get_number<&Rules::keep_jobs>,
            set_number<&Rules::keep_jobs>},
    RuleDef{"log_limit", "SIZE", RuleScope::instance,
            "what one log that berth names may grow to, its head and tail kept; 0: no limit",
            get_size<&Rules::log_limit>, set_size<&Rules::log_limit>},
};

}  // namespace

std::span<const RuleDef> rule_definitions() {
  return kDefinitions;
}

}  // namespace berth
