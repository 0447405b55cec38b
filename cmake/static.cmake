# Release programs need glibc and nothing else: what they use besides is linked into them, so that a
# copied directory runs on machines that have none of these libraries.
#
# The imported targets keep their names and definitions (which on Linux say nothing but that symbols
# are visible), and point to the archive beside the shared library. Where there is no archive, as on
# distributions that ship none, the shared library stays, and a line of the configuration says so.

if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT BERTH_SANITIZE AND NOT BERTH_FUZZ)
  option(BERTH_STATIC "Link all libraries but glibc into the programs" ON)
else()
  option(BERTH_STATIC "Link all libraries but glibc into the programs" OFF)
endif()

# berth_program(NAME): links the C++ runtime into a program, too. Tests do without: they run here.
# Unused sections go, for with them goes what libstdc++'s unused std::random_device asks of glibc:
# arc4random, which Ubuntu 22.04 does not have.
function(berth_program name)
  if(BERTH_STATIC)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections)
  endif()
endfunction()

if(NOT BERTH_STATIC)
  return()
endif()

# Imported shared libraries that are archives need no directory to be found in at run time.
set(CMAKE_SKIP_RPATH ON)

function(berth_use_archive target archive)
  find_library(BERTH_ARCHIVE_${archive} lib${archive}.a)
  mark_as_advanced(BERTH_ARCHIVE_${archive})
  if(BERTH_ARCHIVE_${archive})
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION_RELEASE ${BERTH_ARCHIVE_${archive}} IMPORTED_SONAME_RELEASE "")
  else()
    message(STATUS "There is no lib${archive}.a: the programs will need its shared library")
  endif()
endfunction()

# All are found here, in the scope of the whole project: a folder that asks again gets these targets.
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(SQLite3 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
berth_use_archive(Boost::json boost_json)
berth_use_archive(Boost::container boost_container)
berth_use_archive(SQLite::SQLite3 sqlite3)
set_property(TARGET SQLite::SQLite3 APPEND PROPERTY INTERFACE_LINK_LIBRARIES m ${CMAKE_DL_LIBS})
berth_use_archive(yaml-cpp yaml-cpp)
berth_use_archive(OpenSSL::SSL ssl)
berth_use_archive(OpenSSL::Crypto crypto)
berth_use_archive(ZLIB::ZLIB z)
set_property(TARGET OpenSSL::Crypto APPEND PROPERTY INTERFACE_LINK_LIBRARIES Threads::Threads ${CMAKE_DL_LIBS})

# Debian has no archive of fmt; its headers hold the whole of it. What has to be instantiated differs
# between versions.
if(NOT fmt_VERSION MATCHES "^9\\.")
  message(STATUS "static/fmt.cpp is for fmt 9: the programs will need its shared library")
  return()
endif()
add_library(berth_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/static/fmt.cpp)
target_compile_definitions(berth_fmt PRIVATE FMT_SHARED)
add_dependencies(fmt::fmt berth_fmt)
set_target_properties(fmt::fmt PROPERTIES
  IMPORTED_LOCATION_RELEASE ${CMAKE_BINARY_DIR}/libberth_fmt.a IMPORTED_SONAME_RELEASE "")
