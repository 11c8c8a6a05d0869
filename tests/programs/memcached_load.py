# memcached_load.py SOCKET CONNECTIONS EACH: increments a number in memcached, EACH times by each connection, all
# connections at once; prints the number at the end.
import socket
import sys
import threading


def connect():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    return connection.makefile("rwb")


def ask(connection, line):
    connection.write(line + b"\r\n")
    connection.flush()
    return connection.readline()


def add(count):
    connection = connect()
    for _ in range(count):
        ask(connection, b"incr number 1")


first = connect()
ask(first, b"add number 0 0 1\r\n0")
threads = [threading.Thread(target=add, args=[int(sys.argv[3])]) for _ in range(int(sys.argv[2]))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(int(ask(first, b"incr number 0")))
