// Which of the cards that fit is taken.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <tuple>

#include "unit/core/policy_table.hpp"

namespace berth::testing {
namespace {

class Strategies : public PolicyTable {};
TEST_P(Strategies, Holds) {
  expect_row(GetParam());
}

using Link = std::tuple<std::uint32_t, std::uint32_t, GpuLink>;

/// Idle cards, connected in both directions.
std::vector<GpuFacts> linked(std::uint32_t count, const std::vector<Link>& links) {
  std::vector<GpuFacts> gpus;
  for (std::uint32_t i = 0; i < count; ++i) {
    gpus.push_back(a_gpu(i));
  }
  for (const auto& [a, b, link] : links) {
    gpus[a].links[gpus[b].uuid] = link;
    gpus[b].links[gpus[a].uuid] = link;
  }
  return gpus;
}

/// Every pair of these cards.
void link_all(std::vector<Link>& links, std::uint32_t first, std::uint32_t last, GpuLink link) {
  for (std::uint32_t a = first; a <= last; ++a) {
    for (std::uint32_t b = a + 1; b <= last; ++b) {
      links.emplace_back(a, b, link);
    }
  }
}

const std::vector<Case> kSingle = {
    {"MostFreeIsTheDefault",
     [](World& w) {
       w.see({a_gpu(0).free(10 * kGiB), a_gpu(1).free(20 * kGiB), a_gpu(2).free(15 * kGiB)});
       w.submit({a_job()});
     },
     "1:1", ""},
    {"MostFreeFollowsWhatTheSameDecisionHasPlaced",
     [](World& w) {
       w.see_idle(2);
       w.submit({a_job().memory(10 * kGiB), a_job().memory(4 * kGiB), a_job().memory(4 * kGiB),
                 a_job().memory(4 * kGiB)});
     },
     "1:0 2:1 3:1 4:1", ""},
    {"MostFreeCountsBytesNotShares",
     [](World& w) {
       w.see({a_gpu(0).free(23 * kGiB), a_gpu(1).total(80 * kGiB).free(30 * kGiB)});
       w.submit({a_job()});
     },
     "1:1", ""},
    {"MostFreeIgnoresLoad",
     [](World& w) {
       w.see({a_gpu(0).free(20 * kGiB), a_gpu(1).utilization(30)});
       w.submit({a_job()});
     },
     "1:1", ""},
    {"LeastUtilizedIgnoresFreeMemory",
     [](World& w) {
       w.rule("strategy", "least_utilized");
       w.see({a_gpu(0).utilization(20), a_gpu(1).utilization(10).free(10 * kGiB)});
       w.submit({a_job()});
     },
     "1:1", ""},
    {"LeastUtilizedGoesByTheLastSecondsNotByOneLook",
     [](World& w) {
       w.rule("strategy", "least_utilized");
       w.see({a_gpu(0).utilization(0).busy(40), a_gpu(1).utilization(30).busy(5)});
       w.submit({a_job()});
     },
     "1:1", ""},
    {"LeastUtilizedPrefersTheEmptierOfEquallyBusyOnes",
     [](World& w) {
       w.rule("strategy", "least_utilized");
       w.see({a_gpu(0).utilization(10).free(20 * kGiB), a_gpu(1).utilization(10)});
       w.submit({a_job()});
     },
     "1:1", ""},
    {"LeastUtilizedDoesNotTakeUnknownForIdle",
     [](World& w) {
       w.rule("strategy", "least_utilized");
       w.see({a_gpu(0).unknown_utilization(), a_gpu(1).utilization(20)});
       w.submit({a_job()});
     },
     "1:1", ""},
    {"RoundRobinGoesRound",
     [](World& w) {
       w.rule("strategy", "round_robin");
       w.see_idle(3);
       w.submit(copies(4, a_job().memory(kGiB)));
     },
     "1:0 2:1 3:2 4:0", ""},
    {"RoundRobinGoesOnWithTheNextDecision",
     [](World& w) {
       w.rule("strategy", "round_robin");
       w.see_idle(3);
       w.submit({a_job().memory(kGiB)});
       EXPECT_EQ(w.decide(), "1:0");
       w.submit({a_job().memory(kGiB)});
     },
     "2:1", ""},
    {"RoundRobinPassesOverCardsWithoutRoom",
     [](World& w) {
       w.rule("strategy", "round_robin");
       w.see({a_gpu(0), a_gpu(1).free(0), a_gpu(2)});
       w.submit(copies(3, a_job().memory(kGiB)));
     },
     "1:0 2:2 3:0", ""},
    {"RoundRobinIgnoresFreeMemory",
     [](World& w) {
       w.rule("strategy", "round_robin");
       w.see({a_gpu(0).free(10 * kGiB), a_gpu(1)});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"BestFitTakesTheLeastThatIsEnough",
     [](World& w) {
       w.rule("strategy", "best_fit");
       w.see({a_gpu(0).free(10 * kGiB), a_gpu(1).free(20 * kGiB), a_gpu(2).free(12 * kGiB)});
       w.submit({a_job().memory(11 * kGiB)});
     },
     "1:2", ""},
    {"BestFitKeepsAWholeCardForALargeJob",
     [](World& w) {
       w.rule("strategy", "best_fit");
       w.see_idle(2);
       w.submit({a_job().memory(10 * kGiB), a_job().memory(10 * kGiB), a_job().memory(24 * kGiB)});
     },
     "1:0 2:0 3:1", ""},
    {"BestFitTiesGoToTheLowestIndex",
     [](World& w) {
       w.rule("strategy", "best_fit");
       w.see_idle(3);
       w.submit({a_job()});
     },
     "1:0", ""},
    {"PackPrefersACardInUse",
     [](World& w) {
       w.rule("strategy", "pack");
       w.see({a_gpu(0).free(12 * kGiB), a_gpu(1)});
       w.submit({a_job().memory(4 * kGiB).rule("gpus", "1")});
       EXPECT_EQ(w.decide(), "1:1");
       w.submit({a_job().memory(4 * kGiB)});
     },
     "2:1", ""},
    {"PackOpensACardOnlyWhenTheOthersAreFull",
     [](World& w) {
       w.rule("strategy", "pack");
       w.see_idle(3);
       w.submit(copies(5, a_job().memory(10 * kGiB)));
     },
     "1:0 2:0 3:1 4:1 5:2", ""},
    {"SpreadPrefersTheCardWithTheFewestJobs",
     [](World& w) {
       w.rule("strategy", "spread");
       w.see({a_gpu(0), a_gpu(1).free(10 * kGiB)});
       w.submit({a_job().memory(kGiB).rule("gpus", "0")});
       EXPECT_EQ(w.decide(), "1:0");
       w.submit({a_job().memory(kGiB)});
     },
     "2:1", ""},
    {"SpreadTakesTheFreerOfEquallyUsedCards",
     [](World& w) {
       w.rule("strategy", "spread");
       w.see({a_gpu(0).free(10 * kGiB), a_gpu(1)});
       w.submit(copies(4, a_job().memory(kGiB)));
     },
     "1:1 2:0 3:1 4:0", ""},
    {"MemorySaveTakesTheLeastOfLoadTimesFreeMemory",
     [](World& w) {
       w.rule("strategy", "memory_save");
       w.see({a_gpu(0).busy(10), a_gpu(1).busy(20).free(10 * kGiB), a_gpu(2).busy(30)});
       w.submit({a_job()});
     },
     "1:1", ""},
    {"MemorySaveTakesTheFullestOfIdleCards",
     [](World& w) {
       w.rule("strategy", "memory_save");
       w.see({a_gpu(0), a_gpu(1).free(10 * kGiB), a_gpu(2).free(15 * kGiB)});
       w.submit({a_job()});
     },
     "1:1", ""},
    {"MemorySpendTakesTheLeastOfLoadTimesUsedMemory",
     [](World& w) {
       w.rule("strategy", "memory_spend");
       w.see({a_gpu(0).busy(10).free(10 * kGiB), a_gpu(1).busy(20).free(20 * kGiB),
              a_gpu(2).busy(5).free(7 * kGiB)});
       w.submit({a_job().memory(kGiB)});
     },
     "1:1", ""},
    {"MemorySpendTakesTheEmptiestOfIdleCards",
     [](World& w) {
       w.rule("strategy", "memory_spend");
       w.see({a_gpu(0).free(10 * kGiB), a_gpu(1).free(20 * kGiB), a_gpu(2).free(15 * kGiB)});
       w.submit({a_job()});
     },
     "1:1", ""},
    {"MemorySpendTakesTheLeastBusyOfEmptyCards",
     [](World& w) {
       w.rule("strategy", "memory_spend");
       w.see({a_gpu(0).busy(20), a_gpu(1).busy(5), a_gpu(2).busy(10)});
       w.submit({a_job().memory(kGiB)});
     },
     "1:1", ""},
    {"MemorySpendCountsWhatTheSameDecisionHasPlaced",
     [](World& w) {
       w.rule("strategy", "memory_spend");
       w.see_idle(2);
       w.submit(copies(3, a_job().memory(4 * kGiB)));
     },
     "1:0 2:1 3:0", ""},
    {"FragmentationKeepsAnEmptyCardForWhoeverNeedsOne",
     [](World& w) {
       w.rule("strategy", "fragmentation");
       w.see({a_gpu(0), a_gpu(1).free(12 * kGiB)});
       w.submit({a_job().memory(10 * kGiB).priority(1), a_job().min_free(20 * kGiB)});
     },
     "1:1 2:0", ""},
    {"FragmentationLeavesWhatUsuallyIsAskedFor",
     [](World& w) {
       w.rule("strategy", "fragmentation");
       w.see({a_gpu(0).free(16 * kGiB), a_gpu(1).free(12 * kGiB)});
       w.submit({a_job().memory(4 * kGiB).priority(1), a_job().memory(8 * kGiB),
                 a_job().memory(8 * kGiB), a_job().memory(8 * kGiB)});
     },
     "1:1 2:1 3:0 4:0", ""},
    {"FragmentationTiesGoToTheFullerCard",
     [](World& w) {
       w.rule("strategy", "fragmentation");
       w.see({a_gpu(0), a_gpu(1).free(12 * kGiB)});
       w.submit({a_job().memory(kGiB)});
     },
     "1:1", ""},
    {"EveryJobMayHaveAStrategyOfItsOwn",
     [](World& w) {
       w.see({a_gpu(0).free(10 * kGiB), a_gpu(1)});
       w.submit({a_job().memory(kGiB).rule("strategy", "best_fit"), a_job().memory(kGiB)});
     },
     "1:0 2:1", ""},
    {"AStrategyNeverPutsAJobWhereItDoesNotFit",
     [](World& w) {
       w.rule("strategy", "best_fit");
       w.see({a_gpu(0).free(kGiB), a_gpu(1)});
       w.submit({a_job().memory(2 * kGiB)});
     },
     "1:1", ""},
};

const std::vector<Case> kSeveral = {
    {"WithoutLinksTheStrategyChoosesAll",
     [](World& w) {
       w.see({a_gpu(0).free(10 * kGiB), a_gpu(1).free(20 * kGiB), a_gpu(2).free(15 * kGiB)});
       w.submit({a_job().gpus(2)});
     },
     "1:1+2", ""},
    {"TwoCardsByNvlink",
     [](World& w) {
       w.see(linked(4, {{1, 3, GpuLink::nvlink}}));
       w.submit({a_job().gpus(2)});
     },
     "1:1+3", ""},
    {"NvlinkGoesBeforeFreeMemory",
     [](World& w) {
       auto gpus = linked(4, {{2, 3, GpuLink::nvlink}});
       gpus[2].memory_free = 12 * kGiB;
       gpus[3].memory_free = 10 * kGiB;
       w.see(gpus);
       w.submit({a_job().gpus(2)});
     },
     "1:2+3", ""},
    {"NvlinkGoesBeforeAPcieSwitch",
     [](World& w) {
       w.see(linked(4, {{0, 1, GpuLink::pcie_switch}, {2, 3, GpuLink::nvlink}}));
       w.submit({a_job().gpus(2)});
     },
     "1:2+3", ""},
    {"APcieSwitchGoesBeforeANumaNode",
     [](World& w) {
       w.see(linked(4, {{0, 1, GpuLink::numa}, {2, 3, GpuLink::pcie_switch}}));
       w.submit({a_job().gpus(2)});
     },
     "1:2+3", ""},
    {"ANumaNodeGoesBeforeTheWholeSystem",
     [](World& w) {
       w.see(linked(4, {{0, 1, GpuLink::system}, {2, 3, GpuLink::numa}}));
       w.submit({a_job().gpus(2)});
     },
     "1:2+3", ""},
    {"UnknownLinksCountAsFar",
     [](World& w) {
       w.see(linked(3, {{1, 2, GpuLink::numa}}));
       w.submit({a_job().gpus(2)});
     },
     "1:1+2", ""},
    {"OfEquallyClosePairsTheStrategyChooses",
     [](World& w) {
       auto gpus = linked(4, {{0, 1, GpuLink::nvlink}, {2, 3, GpuLink::nvlink}});
       gpus[0].memory_free = gpus[1].memory_free = 10 * kGiB;
       w.see(gpus);
       w.submit({a_job().gpus(2)});
     },
     "1:2+3", ""},
    {"WithoutTopologyTheStrategyChooses",
     [](World& w) {
       w.rule("topology", "false");
       w.see(linked(4, {{2, 3, GpuLink::nvlink}}));
       w.submit({a_job().gpus(2)});
     },
     "1:0+1", ""},
    {"OneCardNeedsNoNeighbour",
     [](World& w) {
       auto gpus = linked(3, {{1, 2, GpuLink::nvlink}});
       gpus[1].memory_free = gpus[2].memory_free = 20 * kGiB;
       w.see(gpus);
       w.submit({a_job()});
     },
     "1:0", ""},
    {"ThreeCardsOfOneSwitch",
     [](World& w) {
       std::vector<Link> links;
       link_all(links, 0, 4, GpuLink::numa);
       link_all(links, 2, 4, GpuLink::pcie_switch);
       w.see(linked(5, links));
       w.submit({a_job().gpus(3)});
     },
     "1:2+3+4", ""},
    {"ThreeCardsTakeAChainRatherThanAFarPair",
     [](World& w) {
       w.see(linked(4, {{0, 3, GpuLink::nvlink},
                        {1, 2, GpuLink::nvlink},
                        {2, 3, GpuLink::nvlink},
                        {1, 3, GpuLink::pcie_switch}}));
       w.submit({a_job().gpus(3)});
     },
     "1:1+2+3", ""},
    {"FourCardsOfOneNodeWhenTheOtherIsNotWholeAnyMore",
     [](World& w) {
       std::vector<Link> links;
       link_all(links, 0, 3, GpuLink::nvlink);
       link_all(links, 4, 7, GpuLink::nvlink);
       w.see(linked(8, links));
       w.submit({a_job().rule("gpus", "1")});
       EXPECT_EQ(w.decide(), "1:1");
       w.submit({a_job().gpus(4)});
     },
     "2:4+5+6+7", ""},
    {"FourCardsAsTwoPairsOfOneNode",
     [](World& w) {
       w.see(linked(6, {{0, 1, GpuLink::nvlink},
                        {2, 3, GpuLink::nvlink},
                        {4, 5, GpuLink::nvlink},
                        {2, 4, GpuLink::numa},
                        {2, 5, GpuLink::numa},
                        {3, 4, GpuLink::numa},
                        {3, 5, GpuLink::numa}}));
       w.submit({a_job().gpus(4)});
     },
     "1:2+3+4+5", ""},
    {"TwoJobsGetAPairEach",
     [](World& w) {
       w.see(linked(4, {{0, 2, GpuLink::nvlink}, {1, 3, GpuLink::nvlink}}));
       w.submit(copies(2, a_job().gpus(2)));
     },
     "1:0+2 2:1+3", ""},
    {"APairOfWhichOneIsTakenIsNoPair",
     [](World& w) {
       w.see(linked(4, {{0, 1, GpuLink::nvlink}, {2, 3, GpuLink::numa}}));
       w.submit({a_job().rule("gpus", "1")});
       EXPECT_EQ(w.decide(), "1:1");
       w.submit({a_job().gpus(2)});
     },
     "2:2+3", ""},
    {"AllCardsLeaveNothingToChoose",
     [](World& w) {
       w.see(linked(3, {{1, 2, GpuLink::nvlink}}));
       w.submit({a_job().gpus(3)});
     },
     "1:0+1+2", ""},
    {"ARangeTakesCloseCards",
     [](World& w) {
       w.see(linked(4, {{1, 3, GpuLink::nvlink}}));
       w.submit({a_job().gpus(1, 2)});
     },
     "1:1+3", ""},
    {"ARangeMakesDoWithWhatIsLeft",
     [](World& w) {
       w.see_idle(3);
       w.submit({a_job(), a_job().gpus(1, 3)});
     },
     "1:0 2:1+2", ""},
    {"ARangeOfSharesTakesEveryCardWithRoom",
     [](World& w) {
       w.see({a_gpu(0).free(4 * kGiB), a_gpu(1), a_gpu(2)});
       w.submit({a_job().gpus(2, 4).memory(8 * kGiB)});
     },
     "1:1+2", ""},
    {"ARangeWhoseLowerEndIsMoreThanThereAreNeverStarts",
     [](World& w) {
       w.see_idle(2);
       w.submit({a_job().gpus(3, 4)});
     },
     "", "1:no_gpu"},
};

INSTANTIATE_TEST_SUITE_P(Single, Strategies, ::testing::ValuesIn(kSingle), row_name);
INSTANTIATE_TEST_SUITE_P(Several, Strategies, ::testing::ValuesIn(kSeveral), row_name);

}  // namespace
}  // namespace berth::testing
