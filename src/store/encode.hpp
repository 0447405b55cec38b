#pragma once
// Requests, payloads and environments as compact bytes. See docs/formats/store.md.
//
// Every encoding begins with its version, and decoding accepts exactly what encoding makes: a
// damaged value is an error, never a different job.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/job.hpp"

namespace berth {

/// Appends to `out`, so that one buffer serves a whole batch.
void encode_request(const Request& request, std::string& out);
[[nodiscard]] Result<Request> decode_request(std::string_view bytes);

/// What a queue or batch says of the rules; none at all are no bytes.
void encode_rules(const Overrides& rules, std::string& out);
[[nodiscard]] Result<Overrides> decode_rules(std::string_view bytes);

/// Those of a batch that has some.
void encode_traits(const BatchTraits& traits, std::string& out);
/// No bytes: none.
[[nodiscard]] Result<BatchTraits> decode_traits(std::string_view bytes);

/// Without `environment` and `log`, which have columns of their own.
void encode_payload(const Payload& payload, std::string& out);
[[nodiscard]] Result<Payload> decode_payload(std::string_view bytes);

void encode_environment(const Environment& environment, std::string& out);
[[nodiscard]] Result<Environment> decode_environment(std::string_view bytes);

struct GpuSet {
  std::vector<std::string> uuids;
  std::vector<std::uint32_t> indices;

  friend bool operator==(const GpuSet&, const GpuSet&) = default;
};
void encode_gpus(const std::vector<std::string>& uuids, const std::vector<std::uint32_t>& indices,
                 std::string& out);
[[nodiscard]] Result<GpuSet> decode_gpus(std::string_view bytes);

}  // namespace berth
