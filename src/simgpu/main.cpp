// berth-simgpu: makes, shows and changes simulated GPUs, and is the work that runs on them.

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "simgpu/commands.hpp"

namespace {

constexpr std::string_view kHelp =
    R"(Simulated GPUs: a state directory that the simulated libnvidia-ml.so.1 shows to every NVML client.

usage:
  berth-simgpu init DIR SPEC         make DIR simulate SPEC; keeps a DIR that already does
  berth-simgpu show [DIR]            a table of cards and their processes
  berth-simgpu set GPU KEY VALUE     change a card (index, UUID or 'all') or the 'driver'
  berth-simgpu hold GPU [options]    use a card, as a stranger's process would
      --memory SIZE (1GiB)  --util PERCENT (0)  --time TIME (until killed)
      --type C|G|C+G (C)    compute, graphics or both
  berth-simgpu train [options]       a training run on the cards of CUDA_VISIBLE_DEVICES
      --memory SIZE (1GiB)  on every visible card; 0 needs no card
      --ramp TIME (0)       over which the memory is allocated
      --time TIME (1s)      of the whole run, the ramp included
      --util PERCENT (80)   of every visible card, after the ramp
      --steps N (10)        lines 'step i/N loss=… acc=…'
      --exit-code N (0)     with which it ends
      --fail-at STEP        raise an error at this step
      --fail TEXT           the error to raise; without --fail-at, at the last step
      --on-signal NAME:checkpoint[-exit]
                            print 'checkpoint' at USR1, USR2, TERM, INT or HUP, and go on or end
show, set, hold and train take the directory from --dir DIR or from BERTH_SIM_DIR.

settings of a card:
)";

constexpr std::string_view kExamples = R"(
examples:
  berth-simgpu init /tmp/gpus 8x24GiB
  berth-simgpu init /tmp/gpus 2x24GiB,1x80GiB
  export BERTH_SIM_DIR=/tmp/gpus
  berth-simgpu hold 0 --memory 18GiB --util 90 --time 60s &
  berth-simgpu set 3 lost yes
  berth-simgpu set 2 xid 79
  berth-simgpu set driver hang_ms 60000
  berth-simgpu set driver link 0-1:nvlink,2-3:nvlink
  CUDA_VISIBLE_DEVICES=1 berth-simgpu train --memory 4GiB --ramp 0.5s --time 3s --steps 20
)";

void print(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace berth::simgpu;
  const Words words(argv + 1, argv + argc);
  const bool help = words.empty() || words[0] == "help" || words[0] == "-h" ||
                    std::ranges::find(words, "--help") != words.end();
  if (help) {
    std::FILE* stream = words.empty() ? stderr : stdout;
    print(stream, kHelp);
    print(stream, settings_help());
    print(stream, kExamples);
    return words.empty() ? 2 : 0;
  }
  const Words rest(words.begin() + 1, words.end());
  if (words[0] == "init") {
    return run_init(rest);
  }
  if (words[0] == "show") {
    return run_show(rest);
  }
  if (words[0] == "set") {
    return run_set(rest);
  }
  if (words[0] == "hold") {
    return run_hold(rest);
  }
  if (words[0] == "train") {
    return run_train(rest);
  }
  return complain("there is no command '" + words[0] + "'; berth-simgpu --help lists them", 2);
}
