#include "api/http_outflow.hpp"

#include <fmt/format.h>

#include <utility>

namespace berth {
namespace {

constexpr std::string_view kLastChunk = "0\r\n\r\n";
/// Handed out at once.
constexpr std::size_t kPiece = 256 * 1024;

}  // namespace

class Outflow::Sink final : public ResponseSink {
 public:
  explicit Sink(std::weak_ptr<Outflow> flow) : flow_(std::move(flow)) {}
  ~Sink() override {
    if (const auto flow = flow_.lock()) {
      flow->end(false);
    }
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  void write(std::string piece) override {
    if (const auto flow = flow_.lock()) {
      flow->write(piece);
    }
  }
  void close() override {
    if (const auto flow = flow_.lock()) {
      flow->end(true);
    }
  }
  [[nodiscard]] std::size_t pending() const override {
    const auto flow = flow_.lock();
    return flow ? flow->pending() : 0;
  }
  void on_drained(std::function<void()> then) override {
    const auto flow = flow_.lock();
    if (flow && flow->pending() == 0 && !flow->left_) {
      then();
    } else if (flow) {
      flow->drained_ = std::move(then);
    }
  }
  void on_gone(std::function<void()> then) override {
    const auto flow = flow_.lock();
    if (flow && !flow->left_) {
      flow->gone_ = std::move(then);
    } else {
      then();
    }
  }

 private:
  std::weak_ptr<Outflow> flow_;
};

Outflow::Outflow(std::size_t limit, StreamEnd end, std::function<void()> ready)
    : limit_(limit), end_(end), ready_(std::move(ready)) {}

void Outflow::queue(std::string bytes) {
  queued_ += bytes.size();
  queue_.push_back(std::move(bytes));
}

void Outflow::begin(std::string header) {
  queue(std::move(header));
  ready_();
}

std::shared_ptr<ResponseSink> Outflow::sink() {
  return std::make_shared<Sink>(weak_from_this());
}

void Outflow::write(const std::string& piece) {
  if (piece.empty() || ended_ || left_ || broken_) {
    return;
  }
  queue(end_ == StreamEnd::close ? piece : fmt::format("{:x}\r\n{}\r\n", piece.size(), piece));
  broken_ = broken_ || pending() > limit_;
  ready_();
}

void Outflow::end(bool complete) {
  if (std::exchange(ended_, true)) {
    return;
  }
  if (!complete) {
    broken_ = true;
  } else if (end_ == StreamEnd::last_chunk) {
    queue(std::string(kLastChunk));
  }
  ready_();
}

const std::string& Outflow::take() {
  while (!queue_.empty() && current_.size() < kPiece) {
    queued_ -= queue_.front().size();
    current_ += queue_.front();
    queue_.pop_front();
  }
  return current_;
}

void Outflow::sent() {
  current_.clear();
  if (queue_.empty() && drained_ && !left_) {
    std::exchange(drained_, nullptr)();
  }
}

void Outflow::gone() {
  left_ = true;
  drained_ = nullptr;
  if (gone_) {
    std::exchange(gone_, nullptr)();
  }
}

}  // namespace berth
