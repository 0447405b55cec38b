#pragma once
// The way in over TCP: whether and where the instance listens, who gets through, and what is told
// and changed about that. Belongs to the loop's thread; files are read and written on the worker's.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "access/gate.hpp"
#include "access/key_ring.hpp"
#include "access/login_codes.hpp"
#include "access/rate_limit.hpp"
#include "api/http.hpp"
#include "api/routes.hpp"
#include "daemon/listen_settings.hpp"
#include "daemon/loop.hpp"
#include "daemon/worker.hpp"

namespace berth {

struct DoorConfig {
  std::string file;        ///< access.json
  std::string login_page;  ///< what `berth ui` shows a browser
  std::string instance;    ///< its id
  std::string node;        ///< the name of the machine
  std::uint32_t owner = 0;
  std::string user;  ///< his name
};

class Door {
 public:
  struct Hooks {
    HttpHandler handle;                                ///< what gets through
    std::function<void(const std::string&)> complain;  ///< for the log
    std::function<void(const std::string&)> tell;
    std::function<void(const std::string&)> problem;  ///< what is wrong now; empty: nothing
    std::function<std::string()> refusal;             ///< of what berth.yaml says; empty: none
  };

  /// Reads the keys. An unreadable file is an error: going on without it would undo revocations.
  [[nodiscard]] static Result<std::unique_ptr<Door>> open(Loop& loop, DoorConfig config,
                                                          Hooks hooks);

  /// Listens, or not, as the settings say now; what `berth ui` has asked for holds beside them.
  void configure(const ListenSettings& settings);
  /// Answers one of the routes about access.
  void handle(const RouteMatch& match, const HttpRequest& request, Respond respond);
  /// Answers if a page of the console is wanted; whether it was.
  static bool serve_console(const HttpRequest& request, const Respond& respond);
  /// Compresses away from the loop.
  [[nodiscard]] HttpOffload offload();
  void stop();

 private:
  Door(Loop& loop, DoorConfig config, Hooks hooks, AccessFile file);

  struct Wanted {
    std::uint16_t port = 0;  ///< 0: the usual one
    bool exactly = false;    ///< else the next that is free
  };

  // In door.cpp.
  using Then = std::function<void(const Status&)>;
  void listen(Wanted wanted, Then then);
  [[nodiscard]] Status bind(Wanted wanted, const std::shared_ptr<TlsIdentity>& tls);
  /// Whether `berth ui` has, and berth.yaml leaves it to that.
  [[nodiscard]] bool asked_for() const;
  /// Listens as berth.yaml or `berth ui` says, and tries again until it can.
  void listen_as_said(Then then);
  [[nodiscard]] std::string told_of_move(bool asked) const;
  void set_problem(std::string problem);
  void complain(std::string problem);
  /// A certificate lives for weeks, and whoever renews it does not think of us.
  void watch_certificate();
  void look_at_certificate();
  [[nodiscard]] HttpService service();
  [[nodiscard]] std::optional<HttpResponse> gate(HttpRequest& head);
  [[nodiscard]] Doorway make_doorway(bool tls) const;
  [[nodiscard]] std::string base_url() const;
  void drop_expired();
  void watch_expiry();
  void remove_login_page();
  void close();
  /// Writes the keys down; `then` may tell of what has changed.
  void save(Then then);

  // In door_routes.cpp.
  void session(const HttpRequest& request, const Respond& respond) const;
  void login(const HttpRequest& request, Respond respond);
  void logout(const HttpRequest& request, Respond respond);
  void add_token(const HttpRequest& request, Respond respond);
  void remove_token(std::uint64_t id, const HttpRequest& request, Respond respond);
  void drop_others(std::uint64_t key);
  void tell_listen(const Respond& respond) const;
  void open_ui(const HttpRequest& request, Respond respond);
  void remember_port(const std::string& scope, std::shared_ptr<HttpServer> old, Respond respond);
  void give_link(const std::string& scope, const Respond& respond);
  void close_ui(Respond respond);

  Loop& loop_;
  DoorConfig config_;
  Hooks hooks_;
  KeyRing keys_;
  LoginCodes codes_;
  RateLimit rate_;
  ListenSettings settings_;
  std::shared_ptr<HttpServer> server_;
  Doorway doorway_;      ///< of server_
  std::string address_;  ///< of server_
  std::string problem_;  ///< why there is none although there should be, or what is wrong
  std::string stamp_;    ///< of the certificate and key that were read last
  Loop::Handle certificate_look_;
  Loop::Handle next_try_;
  Loop::Handle expiry_look_;
  Loop::Handle login_page_;
  bool moved_ = false;        ///< the usual port was taken
  std::uint64_t change_ = 0;  ///< counts configurations, so that one that comes late is dropped
  bool configured_ = false;
  bool stopped_ = false;
  // They end before all that their tasks touch.
  std::unique_ptr<Worker> files_;
  std::unique_ptr<Worker> packer_;
};

}  // namespace berth
