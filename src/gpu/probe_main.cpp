#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>

#include "base/fd.hpp"
#include "base/write_all.hpp"
#include "gpu/probe.hpp"
#include "gpu/probe_wire.hpp"

namespace berth {
namespace {

constexpr std::size_t kRequestMax = 256;

/// Opens the library at the first request that finds one: a driver may be loaded later.
Result<ProbeReply> look(std::unique_ptr<Probe>& probe, const std::string& library) {
  if (!probe) {
    TRY_ASSIGN(probe, open_nvml_probe(library));
  }
  return probe->sample();
}

}  // namespace

int probe_main(int argc, char** argv) {
  std::string library;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--nvml-library" && i + 1 < argc) {
      library = argv[++i];
    } else if (word != "--probe") {
      std::fprintf(stderr, "GPU probe: unknown argument '%s'; it takes --nvml-library PATH\n",
                   argv[i]);
      return 2;
    }
  }
  // A daemon that is gone ends the probe through write's error or the end of stdin.
  ::signal(SIGPIPE, SIG_IGN);
  // The answers get a descriptor of their own: what a driver library prints must not mix with them.
  const Fd output(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!output || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    std::perror("GPU probe: cannot set up its output");
    return 1;
  }
  std::unique_ptr<Probe> probe;
  std::string pending;
  std::array<char, 512> buffer{};
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return got == 0 ? 0 : 1;
    }
    pending.append(buffer.data(), static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = pending.find('\n')) != std::string::npos;) {
      const auto id = decode_probe_request(std::string_view(pending).substr(0, end));
      pending.erase(0, end + 1);
      ProbeAnswer answer;
      answer.id = id.value_or(0);
      answer.reply = id ? look(probe, library) : std::unexpected(id.error());
      if (!write_all(output.get(), encode_probe_answer(answer))) {
        return 1;
      }
    }
    if (pending.size() > kRequestMax) {
      std::fprintf(stderr, "GPU probe: a request without end\n");
      return 1;
    }
  }
}

}  // namespace berth
