// Pages of jobs over TCP, beside what cannot be spared: the same page read from the store and
// written as JSON by one thread, and a request that needs no store at all.
//
// http_pages PORT TOKEN STORE ROUNDS < targets
//
// In every round each target is asked for once, and after it the other two. Prints a line for each
// target: the median, the 99th percentile and the longest of the page, of the bare page and of the
// bare request in milliseconds, then the bytes of the page and the target.

#include <iostream>

#include "api/target.hpp"
#include "api/wire.hpp"
#include "daemon/views.hpp"
#include "store_fill.hpp"

namespace {

using namespace berth;
using namespace berth::bench;

struct Kind {
  std::string target;
  JobQuery query;
  std::size_t bytes = 0;
  std::vector<double> page;
  std::vector<double> bare_page;
  std::vector<double> bare_request;
};

template <class Work>
double timed(Work work) {
  const auto begun = std::chrono::steady_clock::now();
  work();
  return milliseconds_since(begun);
}

std::string get(HttpClient& client, const std::string& target) {
  HttpResponse answer = must(client.request("GET", target));
  if (answer.status != 200) {
    std::fprintf(stderr, "bench: GET %s: %d %s\n", target.c_str(), answer.status,
                 answer.body.c_str());
    std::exit(1);
  }
  return std::move(answer.body);
}

std::string summary(std::vector<double> times) {
  std::ranges::sort(times);
  return fmt::format("{:.4f} {:.4f} {:.4f}", quantile(times, 0.5), quantile(times, 0.99),
                     times.back());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: http_pages PORT TOKEN STORE ROUNDS < targets\n");
    return 2;
  }
  HttpRemote remote;
  remote.host = "127.0.0.1";
  remote.port = static_cast<std::uint16_t>(std::atoi(argv[1]));
  remote.token = argv[2];
  HttpClient client = must(HttpClient::connect(remote));
  StoreReader reader = must(StoreReader::open(argv[3]));
  const LogPlaces logs{"/var/lib/berth/logs", "bench"};

  std::vector<Kind> kinds;
  for (std::string line; std::getline(std::cin, line);) {
    Kind& kind = kinds.emplace_back();
    kind.target = line;
    const auto parsed = parse_target(line);
    kind.query = must(parse_job_query(parsed ? parsed->query : Query()));
  }
  const int rounds = std::atoi(argv[4]);
  for (int round = -1; round < rounds; ++round) {  // the first is not counted
    for (Kind& kind : kinds) {
      const double page = timed([&] { kind.bytes = get(client, kind.target).size(); });
      const double bare_page =
          timed([&] { (void)encode(must(read_page(reader, kind.query, "node", logs))); });
      const double bare_request = timed([&] { (void)get(client, "/health"); });
      if (round >= 0) {
        kind.page.push_back(page);
        kind.bare_page.push_back(bare_page);
        kind.bare_request.push_back(bare_request);
      }
    }
  }
  for (const Kind& kind : kinds) {
    fmt::print("{} {} {} {} {}\n", summary(kind.page), summary(kind.bare_page),
               summary(kind.bare_request), kind.bytes, kind.target);
  }
  return 0;
}
