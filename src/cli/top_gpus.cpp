// The cards on the screen of `berth top`.

#include <fmt/format.h>

#include <algorithm>

#include "cli/describe.hpp"
#include "cli/top_draw.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kBarLeast = 6;
constexpr std::size_t kWideBarLeast = 8;
constexpr std::size_t kBarMost = 32;
constexpr std::size_t kWideCell = 56;
constexpr std::size_t kListedName = 24;
constexpr std::uint32_t kHot = 85;  ///< Celsius: most cards slow down soon

std::string repeated(const char* sign, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) {
    out += sign;
  }
  return out;
}

/// Memory in `width` signs: used by jobs, used by others, kept for jobs, free. What is there at all
/// gets a sign as long as there is room.
void add_bar(TopLineBuilder& line, const std::optional<GpuMemory>& memory, std::size_t width) {
  if (!memory) {
    line.add(std::string(width, '?'), Style::dim);
    return;
  }
  std::size_t left = width;
  const auto part = [&](Bytes bytes, const char* sign, Style style) {
    const std::size_t exact = (bytes * width + memory->total / 2) / memory->total;
    // A driver keeps a little for itself on every card: that is not worth a sign.
    const bool little = bytes < memory->total / 50;
    const std::size_t signs = std::min(std::max<std::size_t>(exact, little ? 0 : 1), left);
    line.add(repeated(sign, signs), style);
    left -= signs;
  };
  part(memory->jobs, "█", Style::active);
  part(memory->others, "▓", Style::bad);
  part(memory->claimed, "▒", Style::active);
  line.add(repeated("░", left), Style::dim);
}

std::string gib(const std::optional<Bytes>& bytes) {
  return bytes ? fmt::format("{:.0f}", static_cast<double>(*bytes) / static_cast<double>(kGiB))
               : "?";
}

struct Holder {
  std::string text;
  Style style = Style::plain;
};

/// Who has the card.
Holder holder(const GpuView& gpu, bool wide) {
  if (!gpu.trouble.empty()) {
    return {printable(gpu.trouble), Style::bad};
  }
  std::vector<std::uint64_t> jobs;
  for (const ClaimView& claim : gpu.claims) {
    jobs.push_back(claim.job);
  }
  std::string others;
  for (const GpuProcessView& process : gpu.processes.value_or(std::vector<GpuProcessView>())) {
    if (process.job == 0) {
      others +=
          fmt::format("{}{} {}", others.empty() ? "" : ", ", printable(process.name), process.pid);
    }
  }
  const std::string strangers =
      wide && !others.empty() ? fmt::format("others: {}", others) : "others";
  if (!jobs.empty()) {
    return {fmt::format("job {}{}", fmt::join(jobs, ","), others.empty() ? "" : " + " + strangers),
            Style::active};
  }
  if (gpu.state == "free") {
    return {"free", Style::good};
  }
  const std::string remark = wide ? gpu_remark(gpu) : "";
  if (gpu.state != "foreign") {
    return {remark.empty() ? gpu_word(gpu) : remark, Style::plain};
  }
  if (const auto strays = strays_on(gpu); others.empty() && !strays.empty()) {
    return {fmt::format("job {} strays", fmt::join(strays, ",")), Style::bad};
  }
  return {remark.empty() ? strangers : fmt::format("{}; {}", strangers, remark), Style::plain};
}

}  // namespace

TopLine gpu_line(const GpuView& gpu, std::size_t width, bool listed) {
  TopLineBuilder line(width);
  const bool wide = width >= kWideCell;
  line.column(fmt::format("{}", gpu.index), listed ? 4 : 3, Style::bold, true);
  if (listed && wide) {
    line.column(printable(gpu.name), std::min(kListedName, width / 5));
  }
  const std::size_t fixed = wide ? 58 : 30;
  const std::size_t room = width > fixed ? width - fixed : 0;
  add_bar(line, memory_of(gpu),
          std::clamp(listed ? room / 2 : room, wide ? kWideBarLeast : kBarLeast, kBarMost));
  line.add(" ");
  line.column(wide ? fmt::format("{}/{} GiB", gib(gpu.memory_used), gib(gpu.memory_total))
                   : fmt::format("{}/{}G", gib(gpu.memory_used), gib(gpu.memory_total)),
              wide ? 11 : 6, Style::plain, true);
  line.column(gpu.utilization ? fmt::format("{}%", *gpu.utilization) : "?", 4,
              gpu.utilization.value_or(0) > 0 ? Style::bold : Style::dim, true);
  if (wide) {
    line.column(gpu.temperature ? fmt::format("{}°C", *gpu.temperature) : "", 5,
                gpu.temperature.value_or(0) >= kHot ? Style::bad : Style::plain, true);
  }
  if (listed && width >= 100) {
    line.column(gpu.power_mw ? fmt::format("{} W", *gpu.power_mw / 1000) : "", 6, Style::plain,
                true);
  }
  const Holder who = holder(gpu, wide);
  line.add(who.text, who.style);
  return line.take();
}

}  // namespace berth::cli
