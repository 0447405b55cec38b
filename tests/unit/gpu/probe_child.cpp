#include "gpu/probe_wire.hpp"

int main(int argc, char** argv) {
  return berth::probe_main(argc, argv);
}
