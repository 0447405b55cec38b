#include "jobspec/fingerprint.hpp"

namespace berth {
namespace {

/// FNV-1a with the length of each part in front, so that parts cannot run into each other.
class Hash {
 public:
  void add(std::string_view part) {
    add(part.size());
    for (const char c : part) {
      step(static_cast<unsigned char>(c));
    }
  }
  void add(std::uint64_t number) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      step(static_cast<unsigned char>(number >> shift));
    }
  }
  [[nodiscard]] std::uint64_t value() const { return value_ == 0 ? 1 : value_; }

 private:
  void step(unsigned char byte) {
    value_ = (value_ ^ byte) * 0x100000001b3ULL;  // NOLINT: the prime of the definition
  }
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace

std::uint64_t fingerprint(const JobSpec& job, std::string_view more) {
  Hash hash;
  hash.add(job.name);
  hash.add(job.payload.commands.size());
  for (const Command& command : job.payload.commands) {
    hash.add(command.shell ? 1 : 0);
    hash.add(command.argv.size());
    for (const std::string& argument : command.argv) {
      hash.add(argument);
    }
  }
  hash.add(job.payload.extra_env.size());
  for (const std::string& entry : job.payload.extra_env) {
    hash.add(entry);
  }
  hash.add(job.payload.cwd);
  hash.add(more);
  return hash.value();
}

}  // namespace berth
