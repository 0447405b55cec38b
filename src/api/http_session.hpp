#pragma once
// One connection of a server: read a request, hand it out, write the answer, again. Only for
// http_server.cpp.

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "api/http.hpp"
#include "base/fd.hpp"

namespace berth {

/// How far the other end of a connection has got with showing who it is.
enum class HttpStanding : std::uint8_t {
  stranger,  ///< no request of it has been let in as somebody's
  known,
  refused,  ///< turned away; on its way out
};

/// On the io thread alone.
class HttpSession {
 public:
  virtual ~HttpSession() = default;
  virtual void start() = 0;
  /// Answers without having read a request, and closes.
  virtual void turn_away(HttpResponse response) = 0;
  /// Ends it if it is idle or streams; an answer under way is finished.
  virtual void stop() = 0;
  virtual void cut() = 0;
  /// Who made the latest request, as the gate said; none while its answer gets out.
  [[nodiscard]] virtual const Caller* caller() const = 0;
  [[nodiscard]] virtual HttpStanding standing() const = 0;
  [[nodiscard]] virtual std::uint64_t number() const = 0;  ///< as the peer has it
};

/// What sessions need of the server; outlives it while they last.
struct HttpShared {
  boost::asio::io_context& io;
  HttpService service;
  std::shared_ptr<TlsIdentity> tls;
  bool stopping = false;
  /// Open connections. One whose answer is pending may be held by nothing else.
  std::unordered_map<HttpSession*, std::shared_ptr<HttpSession>> sessions = {};
  std::uint64_t accepted = 0;  ///< of connections, all there ever were
};

struct HttpPeer {
  std::uint64_t number = 0;  ///< of the connection; a higher one is younger
  int family = 0;
  std::uint32_t uid = 0;
  std::uint32_t pid = 0;
  std::string address;
};

/// None if the descriptor is of no use.
[[nodiscard]] std::shared_ptr<HttpSession> make_session(std::shared_ptr<HttpShared> shared,
                                                        Fd socket, HttpPeer peer);

}  // namespace berth
