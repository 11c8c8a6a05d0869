#!/bin/sh
# MariaDB: GET_LOCK() takes "Nightly" and "nightly" for two locks, and "jöb" of a UTF-8 client and of a latin1 client, too.
#
# Expected: the name is case insensitive, as MariaDB documents and MySQL does.  A name is a text, which the server converts
#   between character sets wherever it compares texts, so what is the same text is the same lock.
# Found: the lock is that of the bytes of the name, as the client sent them.  Of two programs that ask for "Nightly" and
#   "nightly" both get it.  If the name has a letter beyond ASCII, two programs with different character sets both get it,
#   though the server says that the two texts are equal, and IS_USED_LOCK() tells each of them that it is the owner.
# Where: MariaDB 10.11.19, PyMySQL 1.2.4.
# Why it matters: the character set is a setting of the connection, which differs from driver to driver, and with it who
#   excludes whom.  Names that differ in case only, from two programs or from what users typed, are no longer one lock for
#   who comes from MySQL.

. "$(dirname "$0")/lib.sh"

start_mariadb
install_python pymysql==1.2.4

cat >"$scratch/run.py" <<'END'
import sys
import pymysql

def ask(client, statement, *arguments):
    with client.cursor() as cursor:
        cursor.execute(statement, arguments)
        return cursor.fetchone()[0]

def client(charset):
    return pymysql.connect(unix_socket=sys.argv[1], user="root", charset=charset)

one, two, latin = client("utf8mb4"), client("utf8mb4"), client("latin1")
print("Nightly:", ask(one, "SELECT GET_LOCK('Nightly', 0)"))
print("  Nightly by another:", ask(two, "SELECT GET_LOCK('Nightly', 0)"))
print("  nightly by another:", ask(two, "SELECT GET_LOCK('nightly', 0)"))
print("j\u00f6b by a client with utf8mb4:", ask(one, "SELECT GET_LOCK(%s, 0)", "j\u00f6b"))
print("  by another with utf8mb4:", ask(two, "SELECT GET_LOCK(%s, 0)", "j\u00f6b"))
print("  by one with latin1:", ask(latin, "SELECT GET_LOCK(%s, 0)", "j\u00f6b"))
print("  is the text of both the same:", ask(latin, "SELECT %s = _utf8mb4 0x6ac3b662", "j\u00f6b"))
for who in one, latin:
    print("  its owner is whoever asks:", ask(who, "SELECT IS_USED_LOCK(%s) = CONNECTION_ID()", "j\u00f6b"))
END
"$python" "$scratch/run.py" "$mariadb" >"$scratch/said"

check "$scratch/said" <<'END'
Nightly: 1
  Nightly by another: 0
  nightly by another: 1
jöb by a client with utf8mb4: 1
  by another with utf8mb4: 0
  by one with latin1: 1
  is the text of both the same: 1
  its owner is whoever asks: 1
  its owner is whoever asks: 1
END
