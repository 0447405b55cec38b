// A job that says when it began: appends CLOCK_MONOTONIC in nanoseconds to a file.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

int main(int argc, char** argv) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  if (argc != 2) {
    return 2;
  }
  char line[32];
  const int length = std::snprintf(line, sizeof line, "%lld%09ld\n",
                                   static_cast<long long>(now.tv_sec), now.tv_nsec);
  const int fd = ::open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  return fd >= 0 && ::write(fd, line, static_cast<std::size_t>(length)) == length ? 0 : 1;
}
