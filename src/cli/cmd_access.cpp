// berth ui and berth token.

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "api/access.hpp"
#include "base/whole_file.hpp"
#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/describe.hpp"
#include "cli/server.hpp"
#include "cli/table.hpp"

extern char** environ;  // NOLINT

namespace berth::cli {
namespace {

bool has_display() {
  return std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
}

/// A file of ours that sends the browser there: everybody may read the words of a command, and the
/// link is as good as a token. The daemon removes it when the link is worth nothing any more.
Result<std::string> write_login_page(const Daemon& daemon, const std::string& url) {
  std::string file = fmt::format("{}/{}", daemon.paths().dir, kLoginPage);
  if (::unlink(file.c_str()) != 0 && errno != ENOENT) {  // its mode would stay
    return fail_errno(fmt::format("cannot replace {}", file), errno);
  }
  TRY(replace_whole(file,
                    fmt::format("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                                "<title>berth</title>\n"
                                "<meta http-equiv=\"refresh\" content=\"0; url={0}\"></head>\n"
                                "<body><a href=\"{0}\">berth</a></body></html>\n",
                                url),
                    0600));
  return file;
}

/// Whether a browser has been told. What it prints is not ours to show.
bool open_browser(const std::string& file) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string program = "xdg-open";
  std::string argument = file;
  char* words[] = {program.data(), argument.data(), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, program.c_str(), &actions, nullptr, words, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  return error == 0 && ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

/// For somebody who sits at another machine.
std::string tunnel_advice(const UiAnswer& answer, const std::string& node) {
  return fmt::format(
      "from another machine: ssh -N -L {0}:127.0.0.1:{0} {1}, then open the link "
      "there",
      answer.port, node);
}

Outcome stop_listening(Daemon& daemon) {
  TRY(daemon.call("POST", "/api/ui/stop"));
  print("the daemon does not listen any more\n");
  return 0;
}

std::string when(const std::optional<Millis>& time, const std::string& none) {
  return time ? date_time(*time) : none;
}

}  // namespace

Outcome run_ui(const UiOptions& options) {
  if (options.stop) {
    TRY_ASSIGN(Daemon daemon, Daemon::open(Daemon::Start::never));
    return stop_listening(daemon);
  }
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const std::string body,
             daemon.call("POST", "/api/ui",
                         encode_ui_request({options.port, options.read_only ? "read" : "full"})));
  TRY_ASSIGN(const UiAnswer answer, decode_ui(body));
  if (answer.moved) {
    warn(fmt::format("its port is taken; listening on port {}", answer.port));
  }
  bool opened = false;
  if (!options.print && !chosen_server() && has_display()) {
    const auto page = write_login_page(daemon, answer.url);
    opened = page && open_browser(*page);
    if (!page) {
      warn(page.error().message);
    }
  }
  print(answer.url + "\n");
  if (!opened && !options.print) {
    TRY_ASSIGN(const StatusView status, daemon.get<StatusView>("/api/status"));
    warn(fmt::format("the link is good for one login within {} minutes",
                     kLoginTime.count() / 60'000));
    if (answer.address == "127.0.0.1" && std::getenv("SSH_CONNECTION") != nullptr) {
      warn(tunnel_advice(answer, status.node));
    }
  }
  return 0;
}

Outcome run_token_add(const TokenAddOptions& options) {
  TokenRequest request;
  request.name = options.name;
  request.scope = options.read_only ? "read" : "full";
  request.lifetime = options.lifetime.value_or(kTokenLifetime);
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const std::string body,
             daemon.call("POST", "/api/tokens", encode_token_request(request)));
  if (options.json) {
    print(body + "\n");
    return 0;
  }
  TRY_ASSIGN(const TokenAnswer answer, decode_token_answer(body));
  print(answer.secret + "\n");
  warn(fmt::format("token {} '{}': {}, until {}; it is shown this once", answer.token.id,
                   printable(answer.token.name),
                   answer.token.scope == "full" ? "may do everything" : "may only look",
                   when(answer.token.expires, "it is revoked")));
  return 0;
}

Outcome run_token_ls(bool json) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const std::string body, daemon.call("GET", "/api/tokens"));
  if (json) {
    print(body + "\n");
    return 0;
  }
  TRY_ASSIGN(const auto keys, decode_keys(body));
  if (keys.empty()) {
    print("there are no tokens, and no browser is logged in; berth token add NAME makes one\n");
    return 0;
  }
  Table table({{"ID", Align::right}, {"NAME"}, {"KIND"}, {"MAY"}, {"MADE"}, {"UNTIL"}, {"USED"}});
  for (const KeyRecord& key : keys) {
    table.add({{fmt::format("{}", key.id)},
               {printable(key.name)},
               {key.kind},
               {key.scope == "full" ? "everything" : "look"},
               {date_time(key.created)},
               {when(key.expires, "revoked")},
               {when(key.last_used, "never")}});
  }
  print(table.render(look_at_stdout()));
  return 0;
}

Outcome run_token_rm(const std::vector<std::uint64_t>& ids) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  for (const std::uint64_t id : ids) {
    TRY(daemon.call("DELETE", fmt::format("/api/tokens/{}", id)));
    print(fmt::format("token {} gets nobody in any more\n", id));
  }
  return 0;
}

}  // namespace berth::cli
