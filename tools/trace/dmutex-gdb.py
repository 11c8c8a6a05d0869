# SPDX-License-Identifier: BSD-2-Clause
"""Shows dmutex_t and dcond_t in gdb by their meaning: name, kind, place of use.

gdb loads the file by itself when the library is installed below gdb's auto-load path; else:

    (gdb) source dmutex-gdb.py
    (gdb) print ledger
    $1 = dmutex "billing/ledger", recursive, robust, lease 2000 ms
"""

import gdb
import gdb.printing

TYPES = {0: None, 1: "recursive", 2: "error-checking", 3: "adaptive"}
NO_NAME, NAMED = 0, 1


def text_of(field):
    """The bytes of a char array before the first NUL; other bytes than printable ASCII as \\xNN."""
    count = field.type.sizeof
    raw = bytes(int(field[i]) & 0xFF for i in range(count)).split(b"\0")[0]
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else "\\x%02x" % b for b in raw)


def name_of(value, local):
    """The name in quotes, or where a mutex without a name lives."""
    if int(value["dm_named"]) != NO_NAME:
        return '"%s"' % text_of(value["dm_name"])
    if int(value["dm_pshared"]) != 0:
        return "without a name, process-shared"
    return "without a name, %s" % local


class MutexPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        value = self.value
        words = ["dmutex " + name_of(value, "libc's own")]
        if TYPES.get(int(value["dm_type"]), "of an unknown type"):
            words.append(TYPES.get(int(value["dm_type"]), "of an unknown type"))
        if int(value["dm_robust"]) != 0:
            words.append("robust")
        if int(value["dm_fairness"]) != 0:
            words.append("fair")
        for field, what in (("dm_lease_ms", "lease"), ("dm_maxhold_ms", "longest hold"), ("dm_linger_ms", "linger")):
            if int(value[field]) != 0:
                words.append("%s %d ms" % (what, int(value[field])))
        return ", ".join(words)


class CondPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        clock = "CLOCK_MONOTONIC" if int(self.value["dm_clock"]) == 1 else "CLOCK_REALTIME"
        return "dcond %s, %s" % (name_of(self.value, "private"), clock)


def build():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("libdmutex")
    printers.add_printer("dmutex_t", "^dmutex(_t)?$", MutexPrinter)
    printers.add_printer("dcond_t", "^dcond(_t)?$", CondPrinter)
    return printers


gdb.printing.register_pretty_printer(gdb.current_objfile(), build(), replace=True)
