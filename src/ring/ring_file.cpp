#include "ring/ring_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/crc32.hpp"

namespace berth {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

constexpr std::size_t kHeaderSize = 4096;
constexpr std::string_view kMagic = "berth-ring 1\n";
constexpr std::size_t kBlockRecords = 1024;

/// As it lies in the file.
struct Record {
  std::uint64_t number = 0;  ///< from 1; 0: nothing was ever written here
  std::int64_t time = 0;
  std::uint64_t key = 0;
  std::uint64_t memory = 0;
  std::uint32_t power_mw = 0;
  std::uint16_t temperature = 0;
  std::uint8_t utilization = 0;
  std::uint8_t known = 0;  ///< which of the values
  std::uint32_t reserved = 0;
  std::uint32_t checksum = 0;  ///< of all before it
};
static_assert(sizeof(Record) == 48 && std::is_trivially_copyable_v<Record>);

enum Known : std::uint8_t { kMemory = 1, kUtilization = 2, kTemperature = 4, kPower = 8 };

std::uint32_t checksum_of(const Record& record) {
  std::array<char, sizeof(Record) - sizeof record.checksum> bytes{};
  std::memcpy(bytes.data(), &record, bytes.size());
  return crc32({bytes.data(), bytes.size()});
}

template <class Small, class T>
Small clamped(const std::optional<T>& value) {
  return static_cast<Small>(
      std::min<std::uint64_t>(value.value_or(0), std::numeric_limits<Small>::max()));
}

Record to_record(const RingSample& sample, std::uint64_t number) {
  Record record;
  record.number = number;
  record.time = sample.time.count();
  record.key = sample.key;
  record.memory = sample.memory.value_or(0);
  record.power_mw = sample.power_mw.value_or(0);
  record.temperature = clamped<std::uint16_t>(sample.temperature);
  record.utilization = clamped<std::uint8_t>(sample.utilization);
  record.known = static_cast<std::uint8_t>(
      (sample.memory ? kMemory : 0) | (sample.utilization ? kUtilization : 0) |
      (sample.temperature ? kTemperature : 0) | (sample.power_mw ? kPower : 0));
  record.checksum = checksum_of(record);
  return record;
}

RingSample to_sample(const Record& record) {
  RingSample sample;
  sample.time = Millis(record.time);
  sample.key = record.key;
  const auto known = [&record](Known what) { return (record.known & what) != 0; };
  if (known(kMemory)) {
    sample.memory = record.memory;
  }
  if (known(kUtilization)) {
    sample.utilization = record.utilization;
  }
  if (known(kTemperature)) {
    sample.temperature = record.temperature;
  }
  if (known(kPower)) {
    sample.power_mw = record.power_mw;
  }
  return sample;
}

std::string header_of(const RingShape& shape) {
  std::string header(kMagic);
  for (std::size_t i = 0; i < kRingTiers; ++i) {
    header += fmt::format("{} records, {} ms\n", shape.records.at(i), shape.periods.at(i).count());
  }
  header.resize(kHeaderSize, '\0');
  return header;
}

Status write_at(const Fd& fd, std::string_view bytes, std::uint64_t at) {
  const ssize_t size = ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
  if (size != static_cast<ssize_t>(bytes.size())) {
    return fail_errno("cannot write what was measured", size < 0 ? errno : ENOSPC);
  }
  return {};
}

}  // namespace

std::uint64_t RingFile::place(std::size_t tier, std::uint64_t slot) const {
  std::uint64_t at = kHeaderSize;
  for (std::size_t i = 0; i < tier; ++i) {
    at += std::uint64_t{shape_.records.at(i)} * sizeof(Record);
  }
  return at + slot * sizeof(Record);
}

Result<RingFile> RingFile::open(const std::string& path, RingShape shape) {
  constexpr int kMode = 0600;
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kMode));  // NOLINT
  if (!fd) {
    return fail_errno(fmt::format("cannot open '{}'", path), errno);
  }
  RingFile ring(std::move(fd), shape);
  const std::string wanted = header_of(shape);
  std::string found(kHeaderSize, '\0');
  const ssize_t got = ::pread(ring.fd_.get(), found.data(), found.size(), 0);
  const bool known = got == static_cast<ssize_t>(found.size()) && found == wanted;
  if (!known && ::ftruncate(ring.fd_.get(), 0) != 0) {
    return fail_errno(fmt::format("cannot begin '{}' anew", path), errno);
  }
  // The rest is a hole until it is written; one that was cut off is one again.
  if (::ftruncate(ring.fd_.get(), static_cast<off_t>(ring.place(kRingTiers, 0))) != 0) {
    return fail_errno(fmt::format("cannot make room in '{}'", path), errno);
  }
  if (!known) {
    TRY(write_at(ring.fd_, wanted, 0));
  }
  TRY(ring.find_ends());
  return ring;
}

template <class Each>
Status RingFile::for_each_slot(std::size_t tier, const Each& each) {
  std::vector<Record> block;
  for (std::uint64_t end = shape_.records.at(tier); end > 0;) {
    const std::uint64_t begin = end - std::min<std::uint64_t>(end, kBlockRecords);
    block.assign(end - begin, Record{});
    const ssize_t size = ::pread(fd_.get(), block.data(), block.size() * sizeof(Record),
                                 static_cast<off_t>(place(tier, begin)));
    if (size < 0) {
      return fail_errno("cannot read what was measured", errno);
    }
    for (std::uint64_t slot = end; slot-- > begin;) {
      const Record& record = block[slot - begin];
      // A record that stands where its number does not belong was not written by us.
      if (record.number != 0 && (record.number - 1) % shape_.records.at(tier) == slot) {
        each(record);
      }
    }
    end = begin;
  }
  return {};
}

Status RingFile::find_ends() {
  for (std::size_t tier = 0; tier < kRingTiers; ++tier) {
    // From behind, so that the checksums of few have to be computed.
    TRY(for_each_slot(tier, [&](const Record& record) {
      if (record.number > last_.at(tier) && record.checksum == checksum_of(record)) {
        last_.at(tier) = record.number;
      }
    }));
  }
  return {};
}

Status RingFile::write(std::size_t tier, const RingSample& sample) {
  const std::uint64_t number = last_.at(tier) + 1;
  const Record record = to_record(sample, number);
  std::array<char, sizeof record> bytes{};
  std::memcpy(bytes.data(), &record, bytes.size());
  TRY(write_at(fd_, {bytes.data(), bytes.size()},
               place(tier, (number - 1) % shape_.records.at(tier))));
  last_.at(tier) = number;
  return {};
}

Status RingFile::gather(std::size_t tier, const RingSample& sample) {
  Gathering& gathering = gathering_.at(tier)[sample.key];
  const std::int64_t part = sample.time / shape_.periods.at(tier);
  if (part != gathering.part && !gathering.samples.empty()) {
    const RingSample whole = mean(gathering.samples);
    gathering.samples.clear();
    TRY(write(tier, whole));
  }
  gathering.part = part;
  gathering.samples.push_back(sample);
  return {};
}

void RingFile::forget_old(Millis now) {
  // Attempts come and go; what has not been heard of for so long is over.
  constexpr std::size_t kKeys = 4096;
  if (newest_.size() < kKeys) {
    return;
  }
  std::erase_if(newest_,
                [&](const auto& entry) { return now - entry.second > shape_.periods.back(); });
  for (auto& gathering : gathering_) {
    std::erase_if(gathering, [&](const auto& entry) { return !newest_.contains(entry.first); });
  }
}

Status RingFile::add(const RingSample& sample) {
  const auto [newest, fresh] = newest_.try_emplace(sample.key, sample.time);
  const Millis since = sample.time - newest->second;
  if (!fresh && since >= Millis(0) && since < shape_.periods.front()) {
    return {};
  }
  newest->second = sample.time;
  TRY(write(0, sample));
  for (std::size_t tier = 1; tier < kRingTiers; ++tier) {
    TRY(gather(tier, sample));
  }
  forget_old(sample.time);
  return {};
}

Result<std::vector<RingSample>> RingFile::read_tier(std::size_t tier, std::uint64_t key,
                                                    Millis from, Millis to) {
  std::vector<RingSample> found;
  TRY(for_each_slot(tier, [&](const Record& record) {
    if (record.key == key && record.time >= from.count() && record.time <= to.count() &&
        record.checksum == checksum_of(record)) {
      found.push_back(to_sample(record));
    }
  }));
  std::ranges::sort(found, {}, &RingSample::time);
  return found;
}

Result<std::vector<RingSample>> RingFile::read(std::uint64_t key, Millis from, Millis to) {
  std::vector<RingSample> all;
  for (std::size_t tier = 0; tier < kRingTiers && from <= to; ++tier) {
    TRY_ASSIGN(std::vector<RingSample> some, read_tier(tier, key, from, to));
    if (some.empty()) {
      continue;
    }
    // Only what is older than what the finer ring still has.
    to = some.front().time - Millis(1);
    all.insert(all.begin(), some.begin(), some.end());
  }
  return all;
}

}  // namespace berth
