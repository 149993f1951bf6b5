# SPDX-License-Identifier: Apache-2.0
# Cross-compiles for 64-bit Arm with Debian's toolchain, and runs the tests in qemu-user.
#   cmake --toolchain deploy/aarch64.cmake -DCMAKE_SYSROOT=DIR ...
# DIR has the target's libraries: deploy/aarch64-root.sh makes one of Debian's packages, a
# copy of the robot's own root file system does as well. Without it, the arm64 packages that
# are installed on this machine are taken.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc CACHE FILEPATH "C compiler")
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++ CACHE FILEPATH "C++ compiler")
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
if(CMAKE_SYSROOT)
  set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
endif()
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR}
    "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig")

find_program(VOXELD_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(VOXELD_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${VOXELD_QEMU})
  if(CMAKE_SYSROOT)
    list(APPEND CMAKE_CROSSCOMPILING_EMULATOR -L ${CMAKE_SYSROOT})
  endif()
endif()
