# Examples: one idea each, built with the library, not installed. `demo` is what ./quickstart demo
# runs.
#
# A new one is a line here, and examples_NAME_LDADD = libdmutex/libdmutex.la
example_programs =

noinst_PROGRAMS += $(example_programs)
