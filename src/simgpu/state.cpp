#include "simgpu/state.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>

#include "simgpu/files.hpp"
#include "simgpu/settings.hpp"
#include "simgpu/xids.hpp"

namespace berth::simgpu {
namespace {

std::string card_path(const std::string& directory, unsigned index) {
  return directory + "/gpus/" + std::to_string(index);
}

std::string lock_path(const std::string& directory) {
  return directory + "/lock";
}

// Uuids are a function of position and size alone: a test can be run again and meet the same cards.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

Card make_card(unsigned index, std::uint64_t memory) {
  const std::uint64_t high = mix(mix(memory) + index);
  const std::uint64_t low = mix(high);
  std::array<char, 64> uuid{};
  std::snprintf(uuid.data(), uuid.size(), "GPU-%08x-%04x-4%03x-8%03x-%012llx",
                static_cast<unsigned>(high >> 32), static_cast<unsigned>(high >> 16) & 0xffffU,
                static_cast<unsigned>(high) & 0xfffU, static_cast<unsigned>(low >> 48) & 0xfffU,
                static_cast<unsigned long long>(low & 0xffffffffffffULL));
  std::array<char, 32> bus{};
  std::snprintf(bus.data(), bus.size(), "00000000:%02X:00.0", index + 1);
  Card card;
  card.index = index;
  card.uuid = uuid.data();
  card.name = "Simulated GPU " + format_spec({memory}).substr(2);
  card.pci_bus_id = bus.data();
  card.memory = memory;
  return card;
}

Outcome<void> make_directory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), 0755) != 0) {
    if (errno == EEXIST) {
      return {};
    }
    return std::unexpected(errno_text("cannot create", path));
  }
  if (mode != 0755 && ::chmod(path.c_str(), mode) != 0) {
    return std::unexpected(errno_text("cannot open to all users", path));
  }
  return {};
}

/// The three numbers in the name of a file of procs/.
struct ProcName {
  unsigned pid = 0;
  std::uint64_t start_time = 0;
  unsigned index = 0;
};

std::string format(const ProcName& name) {
  return std::to_string(name.pid) + "-" + std::to_string(name.start_time) + "-" +
         std::to_string(name.index);
}

std::optional<ProcName> parse_proc_name(std::string_view text) {
  const std::size_t first = text.find('-');
  const std::size_t second = text.find('-', first == text.npos ? first : first + 1);
  if (second == text.npos) {
    return std::nullopt;
  }
  const auto pid = parse_number(text.substr(0, first));
  const auto start = parse_number(text.substr(first + 1, second - first - 1));
  const auto index = parse_number(text.substr(second + 1));
  if (!pid || !start || !index || *pid > 0x7fffffff || *index >= kCardsMax) {
    return std::nullopt;
  }
  return ProcName{static_cast<unsigned>(*pid), *start, static_cast<unsigned>(*index)};
}

std::vector<std::string> list(const std::string& path) {
  std::vector<std::string> names;
  if (const std::unique_ptr<DIR, int (*)(DIR*)> handle(::opendir(path.c_str()), &::closedir);
      handle) {
    while (const dirent* entry = ::readdir(handle.get())) {
      names.emplace_back(static_cast<const char*>(entry->d_name));
    }
  }
  return names;
}

// Only under the lock: what looks abandoned then really is.
void remove_dead(const std::string& procs) {
  for (const std::string& name : list(procs)) {
    std::string path = procs;
    path.append("/").append(name);
    const auto parsed = parse_proc_name(name);
    const bool temporary = name.ends_with(".tmp");
    if (temporary || (parsed && start_time_of_living(parsed->pid) != parsed->start_time)) {
      ::unlink(path.c_str());
    }
  }
}

}  // namespace

std::optional<std::uint64_t> start_time_of_living(unsigned pid) {
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  // The name may hold spaces and parentheses; the last ')' ends it, and the state follows.
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos || name_end + 2 >= stat->size()) {
    return std::nullopt;
  }
  std::string_view rest = std::string_view(*stat).substr(name_end + 2);
  if (rest.front() == 'Z' || rest.front() == 'X') {
    return std::nullopt;  // its memory is gone already
  }
  constexpr int kFieldsFromStateToStart = 19;
  for (int i = 0; i < kFieldsFromStateToStart; ++i) {
    const std::size_t space = rest.find(' ');
    if (space == rest.npos) {
      return std::nullopt;
    }
    rest.remove_prefix(space + 1);
  }
  return parse_number(rest.substr(0, rest.find(' ')));
}

unsigned total_util(const std::vector<Allocation>& users) {
  unsigned sum = 0;
  for (const Allocation& user : users) {
    sum = std::min(100U, sum + user.util);
  }
  return sum;
}

Link link_between(const Driver& driver, const Card& one, const Card& other) {
  const auto set = find_link(driver.links, one.index, other.index);
  return set.value_or(one.numa.resolve(0) == other.numa.resolve(0) ? Link::pcie_switch
                                                                   : Link::system);
}

std::uint64_t epoch_us() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

std::uint64_t total_bytes(const std::vector<Allocation>& users) {
  std::uint64_t sum = 0;
  for (const Allocation& user : users) {
    sum += user.bytes;
  }
  return sum;
}

Outcome<void> Directory::init(std::string_view spec) const {
  const auto memories = parse_spec(spec);
  if (!memories) {
    return std::unexpected(memories.error());
  }
  if (auto made = make_directory(path_, 0755); !made) {
    return made;
  }
  const auto lock = FileLock::acquire(lock_path(path_));
  if (!lock) {
    return std::unexpected(lock.error());
  }
  const std::string canonical = format_spec(*memories);
  if (const auto existing = driver()) {
    if (existing->spec == canonical) {
      return {};
    }
    return std::unexpected("'" + path_ + "' already simulates " + existing->spec + ", not " +
                           canonical + "; choose another directory or remove this one");
  }
  // Any user may use the cards, as with /dev/nvidia*.
  for (const auto& [folder, mode] : {std::pair{"/gpus", 0755U}, std::pair{"/procs", 01777U}}) {
    if (auto made = make_directory(path_ + folder, mode); !made) {
      return made;
    }
  }
  for (unsigned index = 0; index < memories->size(); ++index) {
    const Card fresh = make_card(index, (*memories)[index]);
    if (auto written = replace_file(card_path(path_, index), encode(fresh)); !written) {
      return written;
    }
  }
  Driver fresh;
  fresh.spec = canonical;
  fresh.cards = static_cast<unsigned>(memories->size());
  return replace_file(path_ + "/driver", encode(fresh));
}

Outcome<Driver> Directory::driver() const {
  const auto content = read_file(path_ + "/driver");
  if (!content) {
    return std::unexpected("'" + path_ +
                           "' holds no simulated GPUs; make some with: berth-simgpu init " + path_ +
                           " 8x24GiB");
  }
  auto decoded = decode_driver(*content);
  if (!decoded) {
    return std::unexpected("'" + path_ + "/driver' is damaged or of another version; remove '" +
                           path_ + "' and run berth-simgpu init again");
  }
  return *decoded;
}

Outcome<Card> Directory::card(unsigned index) const {
  const std::string path = card_path(path_, index);
  const auto content = read_file(path);
  if (!content) {
    return std::unexpected("there is no GPU " + std::to_string(index) + " in '" + path_ +
                           "'; berth-simgpu show lists them");
  }
  auto decoded = decode_card(*content, index);
  if (!decoded) {
    return std::unexpected("'" + path + "' is damaged; remove '" + path_ +
                           "' and run berth-simgpu init again");
  }
  return *decoded;
}

Outcome<std::vector<Card>> Directory::cards() const {
  const auto facts = driver();
  if (!facts) {
    return std::unexpected(facts.error());
  }
  std::vector<Card> all;
  for (unsigned index = 0; index < facts->cards; ++index) {
    auto one = card(index);
    if (!one) {
      return std::unexpected(one.error());
    }
    all.push_back(*std::move(one));
  }
  return all;
}

std::vector<Allocation> Directory::users(unsigned index) const {
  std::vector<Allocation> found;
  for (const std::string& name : list(path_ + "/procs")) {
    const auto parsed = parse_proc_name(name);
    if (!parsed || parsed->index != index ||
        start_time_of_living(parsed->pid) != parsed->start_time) {
      continue;
    }
    const auto content = read_file(path_ + "/procs/" + name);
    if (!content) {
      continue;  // released between the listing and now
    }
    const Lines lines(*content);
    Allocation user;
    user.pid = parsed->pid;
    user.start_time = parsed->start_time;
    user.bytes = lines.number("bytes").value_or(0);
    user.util =
        static_cast<unsigned>(std::min<std::uint64_t>(lines.number("util").value_or(0), 100));
    user.since_us = lines.number("since").value_or(0);
    const std::string type = lines.text("type").value_or("C");
    user.compute = type.find('C') != std::string::npos;
    user.graphics = type.find('G') != std::string::npos;
    found.push_back(user);
  }
  std::ranges::sort(found, {}, &Allocation::pid);
  return found;
}

Outcome<void> Directory::set_driver(std::string_view key, std::string_view value) const {
  const auto lock = FileLock::acquire(lock_path(path_));
  auto current = lock ? driver() : std::unexpected(lock.error());
  if (!current) {
    return std::unexpected(current.error());
  }
  if (!assign(*current, key, value)) {
    return std::unexpected("cannot set driver " + std::string(key) + " to '" + std::string(value) +
                           "'; berth-simgpu --help lists the keys and their values");
  }
  return replace_file(path_ + "/driver", encode(*current));
}

Outcome<void> Directory::set_card(unsigned index, std::string_view key,
                                  std::string_view value) const {
  const auto lock = FileLock::acquire(lock_path(path_));
  auto current = lock ? card(index) : std::unexpected(lock.error());
  if (!current) {
    return std::unexpected(current.error());
  }
  const auto xid = key == "xid" ? parse_number(value) : std::nullopt;
  if (xid && *xid > 0 && *xid <= 9999) {
    return add_xid(*this, index, static_cast<unsigned>(*xid));
  }
  if (!assign(*current, key, value)) {
    return std::unexpected("cannot set " + std::string(key) + " of GPU " + std::to_string(index) +
                           " to '" + std::string(value) +
                           "'; berth-simgpu --help lists the keys and their values");
  }
  return replace_file(card_path(path_, index), encode(*current));
}

Outcome<Grant> Directory::allocate(unsigned index, const Allocation& more) const {
  const auto lock = FileLock::acquire(lock_path(path_));
  auto target = lock ? card(index) : std::unexpected(lock.error());
  if (!target) {
    return std::unexpected(target.error());
  }
  remove_dead(path_ + "/procs");
  const auto self = static_cast<unsigned>(::getpid());
  const ProcName name{self, start_time_of_living(self).value_or(0), index};

  Grant grant;
  grant.users = users(index);
  const std::uint64_t taken = target->reserved + total_bytes(grant.users);
  grant.free = target->memory > taken ? target->memory - taken : 0;
  if (more.bytes > grant.free) {
    return grant;
  }
  std::uint64_t bytes = more.bytes;
  std::uint64_t since = epoch_us();
  for (const Allocation& user : grant.users) {
    if (user.pid == self) {
      bytes += user.bytes;
      since = user.util == more.util ? user.since_us : since;
    }
  }
  Lines lines;
  lines.add("pid", name.pid);
  lines.add("start", name.start_time);
  lines.add("gpu", target->uuid);
  lines.add("bytes", bytes);
  lines.add("util", more.util);
  lines.add("since", since);
  lines.add("type", more.graphics ? (more.compute ? "C+G" : "G") : "C");
  if (auto written = replace_file(path_ + "/procs/" + format(name), lines.join()); !written) {
    return std::unexpected(written.error());
  }
  grant.granted = true;
  return grant;
}

void Directory::release(unsigned index) const {
  const auto self = static_cast<unsigned>(::getpid());
  const ProcName name{self, start_time_of_living(self).value_or(0), index};
  ::unlink((path_ + "/procs/" + format(name)).c_str());
}

}  // namespace berth::simgpu
