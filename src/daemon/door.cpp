#include "daemon/door.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "api/http_answer.hpp"
#include "api/socket.hpp"
#include "api/tls.hpp"
#include "base/whole_file.hpp"
#include "console/console.hpp"

namespace berth {
namespace {

constexpr std::size_t kFileMax = 1024 * 1024;
constexpr std::uint16_t kPortsTried = 100;
constexpr Millis kHeaderTimeout{20'000};
constexpr Millis kBodyTimeout{60'000};
constexpr Millis kWriteTimeout{30'000};
constexpr Millis kCertificateLook{5'000};
constexpr Millis kNextTry{5'000};      ///< to listen, once it has failed
constexpr Millis kExpiryLook{60'000};  ///< at the latest: the clock may be set

/// Strangers can connect there, so patience is shorter than on the unix socket.
HttpLimits tcp_limits() {
  HttpLimits limits;
  limits.header_timeout = kHeaderTimeout;
  limits.body_timeout = kBodyTimeout;
  limits.write_timeout = kWriteTimeout;
  if (const char* patience = std::getenv("BERTH_TEST_TCP_PATIENCE_MS")) {
    limits.header_timeout = limits.body_timeout = limits.write_timeout =
        Millis(std::max(1, std::atoi(patience)));
  }
  return limits;
}

std::string bracketed(const std::string& address) {
  return address.find(':') == std::string::npos ? address : fmt::format("[{}]", address);
}

bool is_any(const std::string& address) {
  return address == "0.0.0.0" || address == "::";
}

}  // namespace

Result<std::unique_ptr<Door>> Door::open(Loop& loop, DoorConfig config, Hooks hooks) {
  TRY_ASSIGN(const std::optional<std::string> text, read_whole(config.file, kFileMax));
  AccessFile file;
  if (text && !text->empty()) {
    auto decoded = decode_access_file(*text);
    if (!decoded) {
      return fail(
          ErrorCode::corrupt,
          fmt::format("{} cannot be read: {}; repair it, or remove it and with it all tokens",
                      config.file, decoded.error().message));
    }
    file = std::move(*decoded);
  }
  return std::unique_ptr<Door>(
      new Door(loop, std::move(config), std::move(hooks), std::move(file)));
}

Door::Door(Loop& loop, DoorConfig config, Hooks hooks, AccessFile file)
    : loop_(loop),
      config_(std::move(config)),
      hooks_(std::move(hooks)),
      keys_(std::move(file)),
      files_(std::make_unique<Worker>("door")),
      packer_(std::make_unique<Worker>("packer")) {
  keys_.prune(read_clock().wall);
  ::unlink(config_.login_page.c_str());  // codes do not outlive the daemon
}

void Door::configure(const ListenSettings& settings) {
  const bool first = !std::exchange(configured_, true);
  if (stopped_ || (!first && settings == settings_)) {
    return;
  }
  settings_ = settings;
  close();
  set_problem({});
  watch_expiry();
  if (settings_.on.value_or(false) || asked_for()) {
    listen_as_said([](const Status&) {});
  }
}

bool Door::asked_for() const {
  return !settings_.on && keys_.file().port != 0;
}

/// A port is let go, a key is closed to others, a certificate is mended, and nobody tells us.
void Door::listen_as_said(Then then) {
  const bool asked = asked_for();
  const Wanted wanted =
      asked ? Wanted{keys_.file().port, false} : Wanted{settings_.port, settings_.port != 0};
  listen(wanted, [this, asked, change = change_ + 1, then = std::move(then)](const Status& done) {
    if (change == change_ && !stopped_) {
      if (!done) {
        complain(done.error().message);
        next_try_ = loop_.after(kNextTry, [this] { listen_as_said([](const Status&) {}); });
      } else if (moved_) {
        complain(told_of_move(asked));
      }
    }
    then(done);
  });
}

/// Whoever has the port now is sent the tokens of scripts that know only that one.
std::string Door::told_of_move(bool asked) const {
  const std::uint16_t port = asked ? keys_.file().port : kUsualPort;
  const std::string where = fmt::format(
      "listen: port {} is somebody else's now, and the console is at {}/ui/; tell whoever uses the "
      "old one, and",
      port, base_url());
  return asked ? fmt::format("{} berth ui --port {} to stay, or --port {} once that is free", where,
                             server_->port(), port)
               : fmt::format("{} write listen: {} in berth.yaml to stay", where, server_->port());
}

/// In the log once, however often it is tried again.
void Door::complain(std::string problem) {
  if (problem != problem_) {
    hooks_.complain(problem);
  }
  set_problem(std::move(problem));
}

void Door::set_problem(std::string problem) {
  problem_ = std::move(problem);
  hooks_.problem(problem_);
}

void Door::listen(Wanted wanted, Then then) {
  const std::uint64_t change = ++change_;
  next_try_.reset();
  if (const Status usable = check_listen(settings_); !usable) {
    then(usable);
    return;
  }
  if (settings_.certificate.empty()) {
    then(bind(wanted, nullptr));
    return;
  }
  // These are the user's files, and may lie where reading takes for ever.
  using Loaded = Result<std::shared_ptr<TlsIdentity>>;
  files_->post([this, change, wanted, then = std::move(then), certificate = settings_.certificate,
                key = settings_.key]() mutable {
    std::string stamp = TlsIdentity::stamp(certificate, key);
    auto loaded = std::make_shared<Loaded>(TlsIdentity::load(certificate, key));
    loop_.post([this, change, wanted, then = std::move(then), loaded, stamp = std::move(stamp)] {
      if (change != change_ || stopped_) {
        then(fail(ErrorCode::conflict, "something else was asked for meanwhile"));
        return;
      }
      stamp_ = stamp;
      const Status bound = *loaded ? bind(wanted, **loaded) : std::unexpected(loaded->error());
      then(bound);
      if (bound) {
        watch_certificate();
      }
    });
  });
}

void Door::watch_certificate() {
  certificate_look_ = loop_.after(kCertificateLook, [this] { look_at_certificate(); });
}

void Door::look_at_certificate() {
  using Loaded = Result<std::shared_ptr<TlsIdentity>>;
  files_->post([this, change = change_, certificate = settings_.certificate, key = settings_.key,
                known = stamp_] {
    std::string stamp = TlsIdentity::stamp(certificate, key);
    // Read after it was stamped: what is written meanwhile is read again the next time.
    auto loaded = std::make_shared<std::optional<Loaded>>();
    if (stamp != known) {
      *loaded = TlsIdentity::load(certificate, key);
    }
    loop_.post([this, change, loaded, stamp = std::move(stamp)] {
      if (change != change_ || stopped_ || !server_) {
        return;
      }
      watch_certificate();
      stamp_ = stamp;
      if (!*loaded) {
        return;
      }
      if (**loaded) {
        server_->renew(***loaded);
        set_problem({});
        hooks_.tell(
            fmt::format("{} port {} with a renewed certificate", address_, server_->port()));
      } else {
        set_problem(
            fmt::format("listen: the new certificate cannot be used, the one before stays "
                        "in use: {}",
                        (*loaded)->error().message));
        hooks_.complain(problem_);
      }
    });
  });
}

Status Door::bind(Wanted wanted, const std::shared_ptr<TlsIdentity>& tls) {
  const std::uint16_t first = wanted.port != 0 ? wanted.port : kUsualPort;
  const std::uint16_t tries = wanted.exactly ? 1 : kPortsTried;
  const bool encrypted = tls != nullptr;
  for (std::uint16_t i = 0; i < tries; ++i) {
    const auto port = static_cast<std::uint16_t>(first + i);
    auto server =
        HttpServer::listen(loop_.io(), TcpAddress{settings_.address, port}, tls, service());
    if (server) {
      server_ = std::move(*server);
      address_ = settings_.address;
      moved_ = i > 0;
      doorway_ = make_doorway(encrypted);
      set_problem({});
      hooks_.tell(fmt::format("{} port {}{}", address_, port, encrypted ? " with TLS" : ""));
      return {};
    }
    if (server.error().code != ErrorCode::conflict || wanted.exactly) {
      return std::unexpected(std::move(server.error()));
    }
  }
  return fail(ErrorCode::conflict, fmt::format("ports {} to {} are all taken; choose another one",
                                               first, first + kPortsTried - 1));
}

HttpService Door::service() {
  HttpService service;
  service.limits = tcp_limits();
  service.headers = security_headers();
  service.gate = [this](HttpRequest& head) { return gate(head); };
  service.offload = offload();
  service.handler = hooks_.handle;
  return service;
}

HttpOffload Door::offload() {
  return [this](std::function<void()> work, std::function<void()> then) {
    packer_->post([this, work = std::move(work), then = std::move(then)]() mutable {
      work();
      loop_.post(std::move(then));
    });
  };
}

Doorway Door::make_doorway(bool tls) const {
  Doorway doorway;
  doorway.tls = tls;
  doorway.hosts = settings_.hosts;
  doorway.hosts.insert(doorway.hosts.end(), {"localhost", "127.0.0.1", "[::1]"});
  if (!is_loopback(address_)) {
    doorway.hosts.push_back(lower_case(config_.node));
  }
  if (!is_any(address_)) {
    doorway.hosts.push_back(bracketed(address_));
  }
  doorway.cookie = cookie_name(config_.instance);
  return doorway;
}

std::string Door::base_url() const {
  std::string host = bracketed(address_);
  if (!settings_.hosts.empty()) {
    host = settings_.hosts.front();
  } else if (is_any(address_)) {
    host = config_.node;
  }
  return fmt::format("{}://{}:{}", doorway_.tls ? "https" : "http", host, server_->port());
}

std::optional<HttpResponse> Door::gate(HttpRequest& head) {
  const Now now = read_clock();
  Admission admission = admit(head, doorway_, keys_, now.wall);
  // Everybody on this machine has the same address: who has a key does not share with strangers.
  const std::uint64_t key = admission.caller.key;
  if (!rate_.take(key != 0 ? fmt::format("key {}", key) : head.peer_address, now.mono)) {
    return plain_error(429, "too many requests; try again in a moment");
  }
  if (admission.refusal) {
    return std::move(admission.refusal);
  }
  if (admission.caller.key != 0 && keys_.used(admission.caller.key, now.wall)) {
    save([](const Status&) {});
  }
  head.peer_uid = config_.owner;
  head.known = admission.caller.via != Caller::Via::nobody;
  head.caller = std::make_shared<const Caller>(std::move(admission.caller));
  return std::nullopt;
}

bool Door::serve_console(const HttpRequest& request, const Respond& respond) {
  if (!is_console_path(request.path)) {
    return false;
  }
  respond(console_answer(request, console_files()));
  return true;
}

void Door::close() {
  ++change_;
  certificate_look_.reset();
  next_try_.reset();
  if (server_) {
    server_->stop();
    server_.reset();
  }
}

void Door::drop_expired() {
  if (keys_.prune(read_clock().wall) && server_) {
    server_->drop([this](const Caller& caller) {
      return caller.key != 0 && keys_.by_id(caller.key) == nullptr;
    });
  }
}

/// Whoever is connected when their key expires is not to stay connected.
void Door::watch_expiry() {
  const Millis now = read_clock().wall;
  Millis next = kExpiryLook;
  for (const KeyRecord& key : keys_.file().keys) {
    if (key.expires) {
      next = std::clamp(*key.expires - now, Millis(0), next);
    }
  }
  expiry_look_ = loop_.after(next, [this] {
    drop_expired();
    watch_expiry();
  });
}

/// `berth ui` leaves the link there for a browser, which may take its time.
void Door::remove_login_page() {
  login_page_ = loop_.after(kLoginTime, [this] {
    files_->post([file = config_.login_page] { ::unlink(file.c_str()); });
  });
}

void Door::save(Then then) {
  drop_expired();
  watch_expiry();
  files_->post([this, text = encode_access_file(keys_.file()), then = std::move(then)]() mutable {
    auto done = std::make_shared<Status>(replace_whole(config_.file, text, 0600));
    loop_.post([this, done, then = std::move(then)] {
      if (!*done) {
        hooks_.complain(done->error().message);
      }
      then(*done);
    });
  });
}

void Door::stop() {
  stopped_ = true;
  certificate_look_.reset();
  next_try_.reset();
  expiry_look_.reset();
  login_page_.reset();
  if (server_) {
    server_->stop();
  }
}

}  // namespace berth
