// Makes a store with many jobs, all but the last 10,000 of them ended, for a daemon to open.
//
// fill_store FILE JOBS

#include "store_fill.hpp"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: fill_store FILE JOBS\n");
    return 2;
  }
  berth::bench::DrivenStore store(argv[1]);
  berth::bench::fill(store, std::strtoull(argv[2], nullptr, 10), true);
  return 0;
}
