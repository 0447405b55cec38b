#include "core/signatures.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace berth {
namespace {

using enum Symptom;

constexpr std::string_view kOutOfGpuMemory = "out of GPU memory";
constexpr std::string_view kNoCacheRoom = "no GPU memory left for the key-value cache";
constexpr std::string_view kOutOfHostMemory = "out of host memory";

constexpr auto kSignatures = std::to_array<Signature>({
    // PyTorch, also in its older spellings, and ROCm.
    {"cuda out of memory", gpu_memory, kOutOfGpuMemory},
    {"hip out of memory", gpu_memory, kOutOfGpuMemory},
    {"torch.outofmemoryerror", gpu_memory, kOutOfGpuMemory},
    {"torch.cuda.outofmemoryerror", gpu_memory, kOutOfGpuMemory},
    {"cuda error: out of memory", gpu_memory, kOutOfGpuMemory},
    {"hip error: out of memory", gpu_memory, kOutOfGpuMemory},
    // TensorFlow. Its allocator also warns of what it survives.
    {"oom when allocating tensor", gpu_memory, kOutOfGpuMemory, "device:gpu"},
    {"oom when allocating tensor", host_memory, kOutOfHostMemory, "device:cpu"},
    {"oom when allocating tensor",
     some_memory,
     "out of memory, of the GPU or of the host",
     {},
     "device:"},
    {"resourceexhaustederror", gpu_memory, kOutOfGpuMemory, "device:gpu"},
    {"resourceexhaustederror", host_memory, kOutOfHostMemory, "device:cpu"},
    {"resourceexhaustederror",
     some_memory,
     "out of memory, of the GPU or of the host",
     {},
     "device:"},
    {"ran out of memory trying to allocate", gpu_memory, kOutOfGpuMemory, "allocator (gpu",
     "this is not a failure"},
    // JAX.
    {"resource_exhausted: out of memory", gpu_memory, kOutOfGpuMemory},
    // CUDA itself, and its libraries.
    {"cuda_error_out_of_memory", gpu_memory, kOutOfGpuMemory},
    {"cudaerrormemoryallocation", gpu_memory, kOutOfGpuMemory},
    {"cublas_status_alloc_failed", gpu_memory_if, "probably out of GPU memory: cuBLAS got none"},
    {"cudnn_status_alloc_failed", gpu_memory_if, "probably out of GPU memory: cuDNN got none"},
    {"cudnn_status_not_initialized", gpu_memory_if,
     "probably out of GPU memory: cuDNN could not begin"},
    // vLLM.
    {"is less than desired gpu memory utilization", gpu_memory, kOutOfGpuMemory},
    {"no available memory for the cache blocks", gpu_memory, kNoCacheRoom},
    {"is larger than the maximum number of tokens that can be stored in kv cache", gpu_memory,
     kNoCacheRoom},
    {"kv cache is needed, which is larger than the available kv cache memory", gpu_memory,
     kNoCacheRoom},
    // Triton's kernels: memory on the chip, of which every card has what it has.
    {"out of resource: shared memory", on_chip,
     "a Triton kernel needs more shared memory than the card has; more GPU memory does not help"},

    {"an illegal memory access was encountered", code_bug,
     "its code accessed GPU memory that it must not"},
    {"device-side assert triggered", code_bug, "an assertion failed in its GPU code"},
    {"misaligned address", code_bug, "its GPU code used a misaligned address"},
    {"unspecified launch failure", code_bug, "its GPU code crashed"},
    {"no kernel image is available", code_bug,
     "it was built for other cards: no kernel image for this one"},

    {"uncorrectable ecc error encountered", hardware, "the card's memory is damaged"},
    {"gpu is lost", hardware, "the GPU is lost"},
    {"has fallen off the bus", hardware, "the GPU has fallen off the bus"},
    {"no cuda-capable device is detected", no_device, "no usable GPU was found on its card"},

    {"out of memory: killed process", host_memory, kOutOfHostMemory},
    {"oom-kill:constraint=", host_memory, kOutOfHostMemory},
    {"is killed by signal: killed", host_memory, kOutOfHostMemory, "dataloader worker"},
    {"oom_kill event in", host_memory, kOutOfHostMemory},
    {"ray.exceptions.outofmemoryerror", host_memory, kOutOfHostMemory},

    {"unhandled cuda error", aftermath, "NCCL: a CUDA error in one of its processes"},
    {"unhandled system error", aftermath, "NCCL: a system error in one of its processes"},
    {"internal error - please report this issue to the nccl developers", aftermath,
     "NCCL: an internal error"},
    {"remote process exited or there was a network error", aftermath,
     "NCCL: another process ended, or the network failed"},
    {"ncclremoteerror", aftermath, "NCCL: another process ended, or the network failed"},
    {"watchdog caught collective operation timeout", aftermath,
     "NCCL: a process did not take part in a collective operation"},
});

/// What speaks for itself comes first, whatever else is said.
int weight(Symptom symptom) {
  switch (symptom) {
    case gpu_memory_if:
    case some_memory:
      return 1;
    case aftermath:
      return 0;
    default:
      return 2;
  }
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return out;
}

std::string_view line_at(std::string_view text, std::size_t at) {
  const std::size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

bool counts(const Signature& signature, std::string_view line) {
  return (signature.only_with.empty() ||
          line.find(signature.only_with) != std::string_view::npos) &&
         (signature.not_with.empty() || line.find(signature.not_with) == std::string_view::npos);
}

/// Where it stands last, in a line where it counts.
std::optional<std::size_t> last_of(const Signature& signature, std::string_view text) {
  for (std::size_t at = text.rfind(signature.text); at != std::string_view::npos;
       at = text.rfind(signature.text, at - 1)) {
    if (counts(signature, line_at(text, at))) {
      return at;
    }
    if (at == 0) {
      break;
    }
  }
  return std::nullopt;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "1.50 gib", "30.55gib", "1048576 bytes", "13.91/79.33 gib": the number, and the unit after it,
/// which may follow a second number.
std::optional<Bytes> size_at(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [number_end, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || value < 0) {
    return std::nullopt;
  }
  const char* unit = number_end;
  while (unit != end && (is_digit(*unit) || *unit == '.' || *unit == '/')) {
    ++unit;
  }
  while (unit != end && *unit == ' ') {
    ++unit;
  }
  const std::string_view rest(unit, static_cast<std::size_t>(end - unit));
  double scale = 0;
  constexpr std::array kUnits = {
      std::pair{"tib", kTiB}, std::pair{"gib", kGiB}, std::pair{"mib", kMiB},
      std::pair{"kib", kKiB}, std::pair{"tb", kTiB},  std::pair{"gb", kGiB},
      std::pair{"mb", kMiB},  std::pair{"kb", kKiB},  std::pair{"b", Bytes{1}}};
  for (const auto& [name, bytes] : kUnits) {
    if (rest.starts_with(name)) {
      scale = static_cast<double>(bytes);
      break;
    }
  }
  const double bytes = value * scale;
  return scale > 0 && bytes < 1e18 ? std::optional(static_cast<Bytes>(bytes)) : std::nullopt;
}

std::optional<Bytes> size_after(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  return at == std::string_view::npos ? std::nullopt : size_at(line.substr(at + words.size()));
}

/// The size that ends where `words` begin.
std::optional<Bytes> size_before(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  std::size_t begin = at;
  while (begin > 0 && (std::isalpha(static_cast<unsigned char>(line[begin - 1])) != 0)) {
    --begin;
  }
  while (begin > 0 && line[begin - 1] == ' ') {
    --begin;
  }
  while (begin > 0 && (is_digit(line[begin - 1]) || line[begin - 1] == '.')) {
    --begin;
  }
  return size_at(line.substr(begin, at - begin));
}

template <class... Found>
std::optional<Bytes> first_of(const Found&... found) {
  std::optional<Bytes> result;
  ((result = result ? result : found), ...);
  return result;
}

/// "process 812 has 4.00 gib memory in use", of each that is named.
std::optional<Bytes> held_by_named(std::string_view line) {
  constexpr std::string_view kProcess = "process ";
  std::optional<Bytes> sum;
  for (std::size_t at = line.find(kProcess); at != std::string_view::npos;
       at = line.find(kProcess, at + 1)) {
    std::string_view rest = line.substr(at + kProcess.size());
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    rest.remove_prefix(digits);
    if (digits == 0 || !rest.starts_with(" has ")) {
      continue;
    }
    if (const auto held = size_at(rest.substr(5))) {
      sum = sum.value_or(0) + *held;
    }
  }
  return sum;
}

}  // namespace

std::span<const Signature> signatures() {
  return kSignatures;
}

std::optional<Sighting> find_signature(std::string_view log_end) {
  const std::string text = lower(log_end);
  const Signature* best = nullptr;
  std::size_t best_at = 0;
  for (const Signature& signature : kSignatures) {
    const auto at = last_of(signature, text);
    if (!at) {
      continue;
    }
    const int more = best == nullptr ? 1 : weight(signature.symptom) - weight(best->symptom);
    if (more > 0 || (more == 0 && *at > best_at)) {
      best = &signature;
      best_at = *at;
    }
  }
  if (best == nullptr) {
    return std::nullopt;
  }
  return Sighting{best, std::string(line_at(text, best_at))};
}

MemoryFigures read_figures(std::string_view line) {
  MemoryFigures figures;
  figures.tried =
      first_of(size_after(line, "tried to allocate "), size_after(line, "trying to allocate "),
               size_after(line, "out of memory allocating "));
  figures.total =
      first_of(size_after(line, "total capacity of "), size_before(line, " total capacity"));
  figures.free = first_of(size_before(line, " is free"), size_before(line, " free;"));
  const auto all_of_it = size_after(line, "this process has ");
  figures.own = first_of(all_of_it, size_before(line, " reserved in total"),
                         size_before(line, " already allocated"));
  figures.others = held_by_named(line);
  // vLLM: "free memory on device (13.91/79.33 gib) on startup is less than desired gpu memory
  // utilization (0.95, 75.36 gib)".
  constexpr std::string_view kDesired = "desired gpu memory utilization (";
  const std::size_t desired = line.find(kDesired);
  const std::size_t pair = line.find('(', line.find("free memory on device"));
  if (desired != std::string_view::npos && pair < desired) {
    figures.free = size_at(line.substr(pair + 1));
    figures.total = size_at(line.substr(std::min(line.find('/', pair), desired) + 1));
    figures.tried = size_at(line.substr(std::min(line.find(", ", desired), line.size() - 2) + 2));
    figures.own = 0;
  }
  if (!figures.others && figures.own && figures.total && figures.free) {
    // A program's own context is not in its figures; nor is what its libraries take, where only its
    // allocator speaks.
    constexpr Bytes kContext = kGiB;
    const Bytes unsaid = all_of_it ? kContext : std::max(kContext, *figures.total / 8);
    const Bytes known = *figures.own + *figures.free;
    figures.others = *figures.total > known + unsaid ? *figures.total - known : 0;
    figures.guessed = true;
  }
  return figures;
}

}  // namespace berth
