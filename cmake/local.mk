# For find_package(dmutex) of CMake. The path from there to the headers is relative.
cmakedir = $(libdir)/cmake/dmutex
nodist_cmake_DATA = cmake/dmutexConfig.cmake cmake/dmutexConfigVersion.cmake

cmake/dmutexConfig.cmake: cmake/dmutexConfig.cmake.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D)
	$(AM_V_at)headers=`realpath -m -s --relative-to='$(cmakedir)' '$(includedir)'` && \
	    sed "s,@HEADERS@,$$headers," $(srcdir)/cmake/dmutexConfig.cmake.in >$@
cmake/dmutexConfigVersion.cmake: cmake/dmutexConfigVersion.cmake.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D)
	$(AM_V_at)sed 's,@LIBRARY_VERSION@,$(PACKAGE_VERSION),' $(srcdir)/cmake/dmutexConfigVersion.cmake.in >$@

CLEANFILES += $(nodist_cmake_DATA)
EXTRA_DIST += cmake/dmutexConfig.cmake.in cmake/dmutexConfigVersion.cmake.in
