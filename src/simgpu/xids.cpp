#include "simgpu/xids.hpp"

#include <cstdio>

#include "simgpu/files.hpp"

namespace berth::simgpu {
namespace {

std::string path_of(const Directory& directory) {
  return directory.path() + "/xids";
}

}  // namespace

std::vector<Xid> xids_after(const Directory& directory, std::uint64_t seen) {
  std::vector<Xid> found;
  const std::string text = read_file(path_of(directory)).value_or("");
  for (std::size_t line = 0, end = 0; (end = text.find('\n', line)) != text.npos; line = end + 1) {
    unsigned long long number = 0;
    Xid xid;
    if (std::sscanf(&text[line], "%llu %u %u", &number, &xid.card, &xid.code) != 3) {
      continue;
    }
    xid.number = number;
    if (number > seen) {
      found.push_back(xid);
    }
  }
  return found;
}

Outcome<void> add_xid(const Directory& directory, unsigned card, unsigned code) {
  auto all = xids_after(directory, 0);
  all.push_back({all.empty() ? 1 : all.back().number + 1, card, code});
  std::string text;
  for (std::size_t i = all.size() > kXidsMax ? all.size() - kXidsMax : 0; i < all.size(); ++i) {
    text.append(std::to_string(all[i].number)).append(" ");
    text.append(std::to_string(all[i].card)).append(" ");
    text.append(std::to_string(all[i].code)).append("\n");
  }
  return replace_file(path_of(directory), text);
}

}  // namespace berth::simgpu
