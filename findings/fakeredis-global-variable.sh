#!/bin/sh
# fakeredis: one script that sets a global variable makes all later scripts of that server fail.
#
# Expected: as with redis-server. The script with the mistake is refused; the next script of anybody runs.
# Found: the variable stays in the one Lua of the FakeServer, and each later EVAL and EVALSHA of every client is
#   refused with the same message, which names a variable that is not in its text. After SCRIPT FLUSH and FLUSHALL, too.
# Where: fakeredis 2.40.0 with lupa 2.8, fakeredis/commands_mixins/scripting_mixin.py. _check_for_lua_globals() compares
#   the globals with those of the start before each call and after each script, and nothing takes the new one away.
# Why it matters: a test of one lock script, with a forgotten "local", breaks the tests of all others that share the
#   fixture, release scripts included, so that locks stay taken and the failure seems to be elsewhere.

. "$(dirname "$0")/lib.sh"

install_python fakeredis==2.40.0 lupa==2.8 redis==8.1.0
start_redis

cat >"$scratch/run.py" <<'END'
import sys
import fakeredis, redis

release = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
server = fakeredis.FakeServer()
for title, connect in (("redis-server", lambda: redis.Redis(unix_socket_path=sys.argv[1])),
                       ("fakeredis", lambda: fakeredis.FakeRedis(server=server))):
    def run(what, client, *script):
        try:
            print(f"  {what}:", client.eval(*script))
        except redis.ResponseError as error:
            print(f"  {what}: refused,", "tells of 'count'" if "count" in str(error) else "because of its global")

    one, other = connect(), connect()
    print(title)
    one.set("lock", "me")
    try:
        one.eval("count = 1 return count", 0)
        print("  script with a global: runs")
    except redis.ResponseError:
        print("  script with a global: refused")
    run("release by another client", other, release, 1, "lock", "me")
    other.script_flush()
    other.flushall()
    other.set("lock", "me")
    run("release after a flush", other, release, 1, "lock", "me")
    print("  lock is taken:", bool(other.exists("lock")))
END
"$python" "$scratch/run.py" "$redis" >"$scratch/said"

check "$scratch/said" <<'END'
redis-server
  script with a global: refused
  release by another client: 1
  release after a flush: 1
  lock is taken: False
fakeredis
  script with a global: refused
  release by another client: refused, tells of 'count'
  release after a flush: refused, tells of 'count'
  lock is taken: True
END
