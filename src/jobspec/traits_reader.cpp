#include "jobspec/traits_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "jobspec/keys.hpp"
#include "jobspec/values.hpp"

namespace berth {
namespace {

/// Keys of YAML in one line go up to 1024 bytes; longer ones could not be written out again.
constexpr std::size_t kLongestPath = 1000;
const Combination kNoMatrix;

std::string absolute(const std::filesystem::path& base_dir, const std::string& path) {
  return path.empty() ? path : (base_dir / path).lexically_normal().string();
}

void read_derived(const Node& node, const std::filesystem::path& base_dir,
                  std::vector<DerivedFile>& derived, Diagnostics& diagnostics) {
  if (node.kind != Node::Kind::map) {
    diagnostics.add(node.at, fmt::format("'derived' is a map of paths to contents, this is {}",
                                         describe(node.kind)));
    return;
  }
  for (const auto& entry : node.entries) {
    if (entry.key.empty() || entry.key.size() > kLongestPath ||
        entry.key.find('\0') != std::string::npos) {
      diagnostics.add(entry.key_at, "this cannot be a path of at most 1000 bytes");
      continue;
    }
    auto content = entry.value->kind == Node::Kind::null
                       ? std::string()
                       : read_text(*entry.value, "derived", kNoMatrix, diagnostics).value_or("");
    derived.push_back({absolute(base_dir, entry.key), std::move(content)});
  }
}

}  // namespace

void read_traits(const Node& node, const std::filesystem::path& base_dir, BatchTraits& traits,
                 std::vector<DerivedFile>& derived, Diagnostics& diagnostics) {
  if (node.kind != Node::Kind::map) {
    diagnostics.add(node.at, fmt::format("'files' must be a map, this is {}", describe(node.kind)));
    return;
  }
  for (const auto& entry : node.entries) {
    if (std::find(kFilesKeyNames.begin(), kFilesKeyNames.end(), entry.key) ==
        kFilesKeyNames.end()) {
      diagnostics.add(entry.key_at, fmt::format("unknown key '{}'{}", entry.key,
                                                key_hint(entry.key, kFilesKeyNames)));
    }
  }
  const auto read = [&](std::string_view key, std::string& out) {
    if (const auto* value = node.find(key); value != nullptr) {
      out = read_text(*value, key, kNoMatrix, diagnostics).value_or("");
    }
  };
  read("dialect", traits.dialect);
  read("state_dir", traits.state_dir);
  read("log", traits.log);
  read("mode", traits.mode);
  read("config_file", traits.config_file);
  traits.state_dir = absolute(base_dir, traits.state_dir);
  if (traits.log.find('/') != std::string::npos) {
    diagnostics.add(node.find("log")->at, "'log' is the name of a file in 'state_dir', not a path");
  }
  if (const auto* index = node.find("config_index"); index != nullptr) {
    traits.config_index = static_cast<std::uint32_t>(
        read_integer(*index, "config_index", 0, kMostConcurrent, kNoMatrix, diagnostics)
            .value_or(0));
  }
  if (const auto* files = node.find("derived"); files != nullptr) {
    read_derived(*files, base_dir, derived, diagnostics);
  }
}

}  // namespace berth
