// What the API tells and changes about access.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/resources.hpp"
#include "api/wire.hpp"
#include "console/console.hpp"
#include "daemon/answers.hpp"
#include "daemon/door.hpp"

namespace berth {
namespace {

constexpr Millis kSessionLifetime{30ll * 24 * 3600 * 1000};
constexpr std::size_t kKeysMax = 1'000;
constexpr int kSeeOther = 303;
constexpr int kForbidden = 403;
constexpr std::string_view kPages = "/ui/";

HttpResponse to_pages() {
  HttpResponse response;
  response.status = kSeeOther;
  response.headers.emplace_back("Location", kPages);
  return response;
}

HttpResponse stale_link() {
  HttpResponse response;
  response.status = kForbidden;
  response.content_type = "text/html; charset=utf-8";
  response.body =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>berth</title></head>\n"
      "<body><main><h1>This link has been used, or is too old</h1>\n"
      "<p>Run <code>berth ui</code> for a new one.</p>\n"
      "<p lang=\"zh-CN\">此链接已被使用或已过期。请运行 <code>berth ui</code> 获取新链接。</p>"
      "</main></body></html>\n";
  return response;
}

HttpResponse answer_of(const Status& done, HttpResponse good) {
  return done ? std::move(good) : error_response(done.error());
}

}  // namespace

void Door::handle(const RouteMatch& match, const HttpRequest& request, Respond respond) {
  switch (match.route->id) {
    case RouteId::session:
      return session(request, respond);
    case RouteId::login:
      return login(request, std::move(respond));
    case RouteId::logout:
      return logout(request, std::move(respond));
    case RouteId::tokens:
      return respond(ok(encode_keys(keys_.file().keys)));
    case RouteId::add_token:
      return add_token(request, std::move(respond));
    case RouteId::remove_token:
      return remove_token(match.id, request, std::move(respond));
    case RouteId::listen:
      return tell_listen(respond);
    case RouteId::open_ui:
      return open_ui(request, std::move(respond));
    case RouteId::close_ui:
      return close_ui(std::move(respond));
    default:
      return;  // not ours; dropping `respond` answers 500
  }
}

void Door::session(const HttpRequest& request, const Respond& respond) const {
  SessionView view;
  view.user = config_.user;
  view.via = "socket";
  view.scope = "full";
  if (request.caller) {
    view.via = request.caller->via == Caller::Via::cookie ? "cookie" : "token";
    view.scope = request.caller->scope == Scope::full ? "full" : "read";
    view.csrf = request.caller->csrf;
    view.id = request.caller->key;
  }
  respond(ok(encode_session(view)));
}

void Door::login(const HttpRequest& request, Respond respond) {
  Query others = request.query;
  others.erase("code");
  if (const Status known = parse_no_query(others); !known) {
    respond(error_response(known.error()));
    return;
  }
  const auto code = request.query.find("code");
  // Whoever follows it, from then on it is worth nothing.
  const auto scope =
      code != request.query.end() ? codes_.redeem(code->second, read_clock().mono) : std::nullopt;
  const bool known = request.caller && request.caller->via == Caller::Via::cookie;
  const bool gains = scope == "full" && known && request.caller->scope != Scope::full;
  if (known && !gains) {
    respond(to_pages());
    return;
  }
  if (!scope) {
    respond(stale_link());
    return;
  }
  if (known) {
    keys_.remove(request.caller->key);
  }
  const TokenAnswer made =
      keys_.add({"browser", "a browser", *scope, kSessionLifetime}, read_clock().wall);
  HttpResponse response = to_pages();
  response.headers.emplace_back("Set-Cookie",
                                session_cookie(doorway_, made.secret, kSessionLifetime));
  response.last = known;
  save([this, respond = std::move(respond), response,
        former = known ? request.caller->key : 0](const Status& done) {
    respond(answer_of(done, response));
    if (former != 0) {
      drop_others(former);
    }
  });
}

void Door::logout(const HttpRequest& request, Respond respond) {
  if (!request.caller || request.caller->via != Caller::Via::cookie) {
    respond(error_response({ErrorCode::conflict,
                            "only a browser logs out; berth token rm revokes "
                            "a token"}));
    return;
  }
  keys_.remove(request.caller->key);
  HttpResponse response = ok("{}");
  response.headers.emplace_back("Set-Cookie", session_cookie(doorway_, "", Millis(0)));
  response.last = true;
  save([this, respond = std::move(respond), response, key = request.caller->key](Status done) {
    respond(answer_of(done, response));
    drop_others(key);
  });
}

void Door::add_token(const HttpRequest& request, Respond respond) {
  const auto asked = decode_token_request(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  if (keys_.file().keys.size() >= kKeysMax) {
    respond(error_response({ErrorCode::conflict,
                            fmt::format("there are {} tokens and sessions already; berth token rm "
                                        "removes some",
                                        kKeysMax)}));
    return;
  }
  const TokenAnswer made =
      keys_.add({"token", asked->name, asked->scope, asked->lifetime}, read_clock().wall);
  HttpResponse response = ok(encode_token_answer(made));
  save([this, id = made.token.id, respond = std::move(respond), response](const Status& done) {
    if (!done) {
      keys_.remove(id);  // nobody was told of it
    }
    respond(answer_of(done, response));
  });
}

void Door::remove_token(std::uint64_t id, const HttpRequest& request, Respond respond) {
  if (!keys_.remove(id)) {
    respond(error_response({ErrorCode::not_found,
                            fmt::format("there is no token {}; berth token ls lists them", id)}));
    return;
  }
  HttpResponse response = ok("{}");
  response.last = request.caller && request.caller->key == id;
  save([this, id, respond = std::move(respond), response](const Status& done) {
    respond(answer_of(done, response));
    drop_others(id);
  });
}

/// Connections of a key that is no more. Later, so that an answer to itself gets out.
void Door::drop_others(std::uint64_t key) {
  loop_.post([this, key] {
    if (server_) {
      server_->drop([key](const Caller& caller) { return caller.key == key; });
    }
  });
}

void Door::tell_listen(const Respond& respond) const {
  ListenView view;
  view.console = !console_files().empty();
  view.problem = problem_.empty() ? hooks_.refusal() : problem_;
  if (server_) {
    view.listening = true;
    view.address = address_;
    view.port = server_->port();
    view.tls = doorway_.tls;
    view.url = base_url() + std::string(kPages);
    view.moved = moved_;
    view.source = settings_.on ? "berth.yaml" : "berth ui";
  }
  respond(ok(encode_listen(view)));
}

void Door::open_ui(const HttpRequest& request, Respond respond) {
  const auto asked = decode_ui_request(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  if (settings_.on && !*settings_.on) {
    respond(
        error_response({ErrorCode::refused, "berth.yaml says listen: off; take that out first"}));
    return;
  }
  const bool elsewhere = server_ && asked->port != 0 && asked->port != server_->port();
  if (server_ && !elsewhere) {
    if (asked->port != 0 && !settings_.on && keys_.file().port != asked->port) {
      moved_ = false;  // that is where it is wanted
      set_problem({});
      remember_port(asked->scope, nullptr, std::move(respond));
    } else {
      give_link(asked->scope, respond);
    }
    return;
  }
  const auto elsewhere_said = [](const Respond& to) {
    to(error_response({ErrorCode::conflict, "berth.yaml says where to listen; change it there"}));
  };
  if (settings_.on && server_) {
    return elsewhere_said(respond);
  }
  if (settings_.on) {  // what was in the way may be gone
    listen_as_said(
        [this, elsewhere_said, asked = *asked, respond = std::move(respond)](const Status& done) {
          if (!done) {
            respond(error_response(
                {ErrorCode::conflict,
                 fmt::format("cannot listen as berth.yaml says: {}", done.error().message)}));
          } else if (asked.port != 0 && asked.port != server_->port()) {
            elsewhere_said(respond);
          } else {
            give_link(asked.scope, respond);
          }
        });
    return;
  }
  // The old one goes only when the answer, which it may have to carry, is on its way.
  const std::shared_ptr<HttpServer> old = server_;
  listen({asked->port, asked->port != 0},
         [this, old, scope = asked->scope, respond = std::move(respond)](Status done) {
           if (!done) {  // the old one, if any, is still there
             respond(error_response(done.error()));
           } else {
             remember_port(scope, old, respond);
           }
         });
}

/// `old` is kept until it is done.
void Door::remember_port(const std::string& scope, std::shared_ptr<HttpServer> old,
                         Respond respond) {
  keys_.set_port(server_->port());
  save([this, scope, old = std::move(old), respond = std::move(respond)](const Status& saved) {
    if (!saved) {
      respond(error_response(saved.error()));
    } else {
      give_link(scope, respond);
    }
  });
}

void Door::give_link(const std::string& scope, const Respond& respond) {
  if (!server_) {
    respond(error_response({ErrorCode::conflict, "it was closed again meanwhile"}));
    return;
  }
  UiAnswer answer;
  answer.url = fmt::format("{}/login?code={}", base_url(), codes_.issue(read_clock().mono, scope));
  answer.address = address_;
  answer.port = server_->port();
  answer.moved = moved_;
  remove_login_page();
  respond(ok(encode_ui(answer)));
}

void Door::close_ui(Respond respond) {
  if (settings_.on && *settings_.on) {
    respond(error_response({ErrorCode::conflict,
                            "berth.yaml says to listen; take listen out of it, or write "
                            "listen: off"}));
    return;
  }
  keys_.set_port(0);
  save([this, respond = std::move(respond)](const Status& done) {
    respond(answer_of(done, ok("{}")));
    if (done) {
      close();
      set_problem({});
    }
  });
}

}  // namespace berth
