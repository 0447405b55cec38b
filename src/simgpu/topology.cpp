#include "simgpu/topology.hpp"

#include <algorithm>
#include <array>

#include "simgpu/text.hpp"

namespace berth::simgpu {
namespace {

constexpr std::array<std::pair<Link, std::string_view>, 5> kLinkNames{{
    {Link::nvlink, "nvlink"},
    {Link::pcie_switch, "pcie_switch"},
    {Link::numa, "numa"},
    {Link::system, "system"},
    {Link::unknown, "unknown"},
}};

struct Setting {
  std::pair<unsigned, unsigned> cards;
  std::optional<Link> link;  ///< nullopt: auto
};

std::optional<Setting> parse_setting(std::string_view text, unsigned cards) {
  const std::size_t dash = text.find('-');
  const std::size_t colon = text.find(':');
  if (dash == text.npos || colon == text.npos || dash > colon) {
    return std::nullopt;
  }
  const auto one = parse_number(text.substr(0, dash));
  const auto other = parse_number(text.substr(dash + 1, colon - dash - 1));
  if (!one || !other || *one == *other || std::max(*one, *other) >= cards) {
    return std::nullopt;
  }
  Setting setting;
  setting.cards = {static_cast<unsigned>(std::min(*one, *other)),
                   static_cast<unsigned>(std::max(*one, *other))};
  const std::string_view name = text.substr(colon + 1);
  for (const auto& [link, link_name] : kLinkNames) {
    if (name == link_name) {
      setting.link = link;
    }
  }
  if (!setting.link && name != "auto") {
    return std::nullopt;
  }
  return setting;
}

}  // namespace

bool assign_links(Links& links, std::string_view text, unsigned cards) {
  Links changed = links;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const auto setting = parse_setting(text.substr(0, comma), cards);
    if (!setting) {
      return false;
    }
    changed.erase(setting->cards);
    if (setting->link) {
      changed[setting->cards] = *setting->link;
    }
    more = comma != text.npos;
    text.remove_prefix(more ? comma + 1 : text.size());
  }
  links = std::move(changed);
  return true;
}

std::string format_links(const Links& links) {
  std::string text;
  for (const auto& [cards, link] : links) {
    text.append(text.empty() ? "" : ",").append(std::to_string(cards.first)).append("-");
    text.append(std::to_string(cards.second)).append(":");
    for (const auto& [known, name] : kLinkNames) {
      text.append(known == link ? name : "");
    }
  }
  return text;
}

std::optional<Link> find_link(const Links& links, unsigned one, unsigned other) {
  const auto found = links.find({std::min(one, other), std::max(one, other)});
  return found == links.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace berth::simgpu
