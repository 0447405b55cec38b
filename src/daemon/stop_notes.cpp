#include "daemon/stop_notes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>

#include "base/fd.hpp"
#include "base/whole_file.hpp"

namespace berth {
namespace {

namespace json = boost::json;

constexpr std::size_t kMost = 16 * 1024 * 1024;
constexpr std::string_view kSuffix = ".json";
constexpr std::string_view kHalf = ".tmp";  ///< what replace_whole() had not finished

std::string encode_note(const StopNote& note) {
  json::object out;
  out["batch"] = note.batch.value;
  out["kill"] = note.kill;
  out["by_uid"] = note.by_uid;
  json::array queues;
  for (const std::string& queue : note.queues) {
    queues.emplace_back(queue);
  }
  out["queues"] = std::move(queues);
  return json::serialize(out) + "\n";
}

Result<StopNote> decode_note(const std::string& path, const std::string& text) {
  try {
    const json::object in = json::parse(text).as_object();
    StopNote note;
    note.batch = BatchId{json::value_to<std::uint64_t>(in.at("batch"))};
    note.kill = in.at("kill").as_bool();
    note.by_uid = json::value_to<std::uint32_t>(in.at("by_uid"));
    for (const json::value& queue : in.at("queues").as_array()) {
      note.queues.emplace_back(queue.as_string());
    }
    return note;
  } catch (const std::exception& error) {
    return fail(
        ErrorCode::corrupt,
        fmt::format("{} does not say what was being stopped ({}); queues that it paused are "
                    "resumed by `berth resume --queue NAME`, then delete it",
                    path, error.what()));
  }
}

}  // namespace

std::string StopNotes::path(BatchId batch) const {
  return fmt::format("{}/{}{}", dir_, batch.value, kSuffix);
}

Status StopNotes::write(const StopNote& note) const {
  if (::mkdir(dir_.c_str(), 0700) == 0) {
    const Fd above(::open((dir_ + "/..").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (above) {
      ::fsync(above.get());
    }
  } else if (errno != EEXIST) {
    return fail_errno(fmt::format("cannot make {}", dir_), errno);
  }
  return replace_whole(path(note.batch), encode_note(note), 0600);
}

Status StopNotes::remove(BatchId batch) const {
  const std::string file = path(batch);
  if (::unlink(file.c_str()) != 0 && errno != ENOENT) {
    return fail_errno(fmt::format("cannot delete {}", file), errno);
  }
  return {};
}

StopNotes::Found StopNotes::read() const {
  Found found;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(dir_.c_str()), ::closedir);
  while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
    const std::string name = entry->d_name;
    const std::string file = dir_ + "/" + name;
    if (name.ends_with(kHalf)) {
      ::unlink(file.c_str());  // whoever wrote it has died, and was not asked to go on
      continue;
    }
    if (!name.ends_with(kSuffix)) {
      continue;
    }
    const auto text = read_whole(file, kMost);
    if (!text || !*text) {
      found.problems.push_back(text ? file + " has gone" : text.error().message);
      continue;
    }
    auto note = decode_note(file, **text);
    if (note) {
      found.notes.push_back(std::move(*note));
    } else {
      found.problems.push_back(std::move(note.error().message));
    }
  }
  std::ranges::sort(found.notes, {}, &StopNote::batch);
  return found;
}

}  // namespace berth
