#include "daemon/stream_submit.hpp"

#include <malloc.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace berth {
namespace {

/// So many decoded parts wait for the engine at most.
constexpr std::size_t kPartsWaiting = 8;
/// A line is one job, and a job is not larger than what the kernel takes as its arguments.
constexpr std::size_t kLineMax = 16 * 1024 * 1024;

}  // namespace

void StreamSubmit::start(Loop& loop, Engine& engine, Worker& decoder, HttpRequest request,
                         Respond respond, std::function<void()> done) {
  const std::shared_ptr<StreamSubmit> self(new StreamSubmit(
      loop, engine, decoder, std::move(request), std::move(respond), std::move(done)));
  self->read();
}

StreamSubmit::StreamSubmit(Loop& loop, Engine& engine, Worker& decoder, HttpRequest request,
                           Respond respond, std::function<void()> done)
    : loop_(loop),
      engine_(engine),
      decoder_(decoder),
      request_(std::move(request)),
      respond_(std::move(respond)),
      done_(std::move(done)),
      lines_(kLineMax) {}

void StreamSubmit::read() {
  if (over_ || complete_ || reading_ || parts_.size() >= kPartsWaiting) {
    return;
  }
  reading_ = true;
  request_.stream->read([self = shared_from_this()](Result<std::string> piece) {
    self->loop_.timed([&] {
      if (!piece) {
        self->fail_with(piece.error());
      } else if (!self->over_) {
        self->decode(std::move(*piece));
      }
    });
  });
}

void StreamSubmit::decode(std::string piece) {
  decoder_.post([self = shared_from_this(), piece = std::move(piece)] {
    auto out = std::make_shared<Decoded>(self->decode_piece(piece));
    self->loop_.post([self, out] { self->decoded(std::move(*out)); });
  });
}

StreamSubmit::Decoded StreamSubmit::decode_piece(const std::string& piece) {
  Decoded out;
  out.end = piece.empty();
  const auto take = [&](std::string_view line) { return take_line(line, out); };
  if (auto taken = out.end ? lines_.finish(take) : lines_.feed(piece, take); !taken) {
    out.error = std::move(taken.error());
  } else if (out.end && !head_) {
    out.error = Error{ErrorCode::invalid,
                      "the submission is empty; its first line must say what "
                      "the jobs share, and how many there are"};
  }
  return out;
}

Status StreamSubmit::take_line(std::string_view line, Decoded& out) {
  if (!head_) {
    TRY_ASSIGN(StreamHead head, decode_stream_head(line));
    head_ = head;
    out.head = std::move(head);
    return {};
  }
  TRY_ASSIGN(JobSpec job, decode_stream_job(line, *head_, jobs_));
  ++jobs_;
  if (out.parts.empty() || out.weight >= kPartJobs) {
    out.parts.emplace_back().reserve(kPartJobs);
    out.weight = 0;
  }
  out.weight += part_weight(job);
  out.parts.back().push_back(std::move(job));
  return {};
}

void StreamSubmit::decoded(Decoded piece) {
  reading_ = false;
  if (over_) {
    return;
  }
  if (piece.error) {
    return fail_with(*piece.error);
  }
  complete_ = complete_ || piece.end;
  std::ranges::move(piece.parts, std::back_inserter(parts_));
  if (piece.head) {
    begin(*piece.head);
  }
  feed();
  read();
}

void StreamSubmit::begin(const StreamHead& head) {
  event::SubmitBegin event = head.begin;
  event.owner = request_.peer_uid;
  const std::weak_ptr<StreamSubmit> weak = weak_from_this();
  submission_ = PartSubmission::begin(
      engine_, std::move(event),
      [self = shared_from_this()](const Result<Answer>& answer) { self->finish(answer); },
      [weak] {
        if (const auto self = weak.lock()) {
          self->feed();
        }
      });
  if (over_) {
    submission_.reset();  // refused at once; they would hold each other
  }
}

/// Gives the engine one part and comes back for the next, so that others have their turn in
/// between.
void StreamSubmit::feed() {
  if (!submission_ || submission_->over() || feeding_) {
    return;
  }
  if (parts_.empty()) {
    if (complete_ && submission_->ready() && !std::exchange(ended_, true)) {
      submission_->end();
    }
    return;
  }
  if (!submission_->ready()) {
    return;
  }
  // A refusal may come at once, and clears both.
  const auto submission = submission_;
  std::vector<JobSpec> part = std::move(parts_.front());
  parts_.pop_front();
  submission->add(std::move(part));
  if (over_) {
    return;
  }
  read();
  feeding_ = true;
  loop_.post([self = shared_from_this()] {
    self->feeding_ = false;
    self->feed();
  });
}

void StreamSubmit::finish(const Result<Answer>& answer) {
  if (std::exchange(over_, true)) {
    return;
  }
  if (answer) {
    const auto& submitted = std::get<Submitted>(*answer);
    HttpResponse response;
    response.body = encode(SubmitAnswer{submitted.batch.value, submitted.first.value,
                                        submitted.first.value + submitted.count - 1});
    respond_(std::move(response));
  } else {
    respond_(error_response(answer.error()));
  }
  parts_.clear();
  submission_.reset();
  decoder_.post([] { ::malloc_trim(0); });  // what was decoded has been written and freed
  done_();
}

void StreamSubmit::fail_with(const Error& error) {
  if (submission_) {
    submission_->abort();
  }
  finish(std::unexpected(error));
}

}  // namespace berth
