#pragma once
// The files that tell scripts of another scheduler about a batch, seen from the program that was
// started in its place. The daemon writes them, see daemon/state_files.hpp.

#include <cstdint>
#include <string>

namespace berth::cli {

/// Returns when the files in `state_dir` tell that the batch has ended, or after a moment if they
/// do not: a script that reads them as soon as the scheduler has returned finds them true.
/// `pid` is that of the submitting process.
void wait_until_told(const std::string& state_dir, std::uint64_t pid, std::uint64_t batch);

}  // namespace berth::cli
