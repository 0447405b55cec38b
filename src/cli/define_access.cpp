// ui and token.

#include <memory>

#include "base/units.hpp"
#include "cli/define.hpp"

namespace berth::cli {
namespace {

/// What may follow `token add`, `token ls` and `token rm`.
struct TokenWords {
  std::string action;
  std::vector<std::string> rest;
  TokenAddOptions add;
};

Outcome run_token(const TokenWords& words) {
  if (words.action == "ls") {
    return run_token_ls(words.add.json);
  }
  if (words.action == "add") {
    TokenAddOptions add = words.add;
    add.name = words.rest.front();
    return run_token_add(add);
  }
  std::vector<std::uint64_t> ids;
  for (const std::string& word : words.rest) {
    ids.push_back(checked_number<std::uint64_t>("ID", word, "the id of a token"));
  }
  return run_token_rm(ids);
}

void check_words(const TokenWords& words) {
  if (words.action != "add" && words.action != "ls" && words.action != "rm") {
    throw CLI::ValidationError("ACTION",
                               fmt::format("'{}' is not add, ls or rm", printable(words.action)));
  }
  if (words.action == "add" && words.rest.size() != 1) {
    throw CLI::ValidationError("NAME", "token add takes one name, as in berth token add laptop");
  }
  if (words.action == "rm" && words.rest.empty()) {
    throw CLI::ValidationError("ID", "token rm takes ids; berth token ls lists them");
  }
  if (words.action == "ls" && !words.rest.empty()) {
    throw CLI::ValidationError("NAME", "token ls takes nothing more");
  }
  if (words.action == "rm") {
    for (const std::string& word : words.rest) {
      checked_number<std::uint64_t>("ID", word, "the id of a token");
    }
  }
}

void define_token(CLI::App& app, Action& action) {
  const auto in = std::make_shared<TokenWords>();
  CLI::App& sub = *command(app, "token", "Tokens for scripts and other machines: add, ls, rm",
                           "  (umask 077; berth token add laptop > ~/.berth-token)\n"
                           "  berth token add dashboard --read-only --expires 365d\n"
                           "  berth token ls\n"
                           "  berth token rm 3            from then on it gets nobody in\n"
                           "Over TCP every request needs one; see also berth ui and --server.");
  sub.add_option("ACTION", in->action, "add, ls or rm")->required()->type_name("add|ls|rm");
  sub.add_option("NAME", in->rest, "add: what to call it; rm: ids")->type_name("");
  sub.add_flag("--read-only", in->add.read_only, "it may look, and change nothing");
  option(sub, "--expires", "TIME", "how long it is good, as 12h, 30d, or never (90d)",
         [in](const auto& t) {
           in->add.lifetime = t == "never" ? Millis(0) : checked("--expires", parse_duration(t));
           if (t != "never" && in->add.lifetime == Millis(0)) {
             throw CLI::ValidationError(
                 "--expires", "it would be good for no time at all; never: it does not expire");
           }
         });
  json_flag(sub, in->add.json);
  sub.callback([in, &action] {
    check_words(*in);
    action = [in] { return run_token(*in); };
  });
}

void define_ui(CLI::App& app, Action& action) {
  const auto in = std::make_shared<UiOptions>();
  CLI::App& sub =
      *command(app, "ui", "Open the console in a browser",
               "  berth ui             begins to listen, and prints a link for one login\n"
               "  berth ui --print     only prints it\n"
               "  berth ui --read-only a link for somebody who may look and change nothing\n"
               "  berth ui --stop      listens no longer\n"
               "It listens on 127.0.0.1, port 29214 or the next that is free, until it\n"
               "is stopped. berth.yaml can say otherwise: listen.");
  sub.add_flag("--print", in->print, "print the link and open nothing");
  option(sub, "--port", "N", "listen on this port",
         [in](const auto& t) { in->port = checked_number<std::uint16_t>("--port", t, "a port"); });
  sub.add_flag("--read-only", in->read_only, "who follows the link may only look");
  sub.add_flag("--stop", in->stop, "stop listening")
      ->excludes("--port")
      ->excludes("--print")
      ->excludes("--read-only");
  sub.callback([in, &action] { action = [in] { return run_ui(*in); }; });
}

}  // namespace

void server_options(CLI::App& app, ServerOptions& options) {
  option(app, "--server", "URL", "another machine's instance, as https://gpu1:29214",
         [&options](const auto& t) { options.url = t; });
  option(app, "--token-file", "FILE", "a token for it; berth token add makes one there",
         [&options](const auto& t) { options.token_file = t; });
  option(app, "--ca-file", "FILE", "whose certificates to believe (the system's)",
         [&options](const auto& t) { options.ca_file = t; });
}

void define_access(CLI::App& app, Action& action) {
  define_ui(app, action);
  define_token(app, action);
}

}  // namespace berth::cli
