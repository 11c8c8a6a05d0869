#!/bin/sh
# Debian's ZooKeeper: with Netty and a secure port it starts without a complaint, and serves nobody.
#
# Expected: serverCnxnFactory=NettyServerCnxnFactory with secureClientPort and a PEM key store, as the administrator's
#   guide of ZooKeeper says, serves TLS.
# Found: the server takes connections on both ports, and ends each of them without a byte. Its log, which goes nowhere
#   unless a logger is configured, has ClassNotFoundException: io.netty.handler.codec.ByteToMessageDecoder. With two more
#   jars of libnetty-java, which is installed with it, in the class path both ports work.
# Where: libzookeeper-java 3.8.0-11+deb12u2. The start script's class path is zookeeper.jar, whose manifest names
#   netty-handler.jar, and not netty-codec.jar and netty-resolver.jar, which that needs.
# Why it matters: clients of locks say "connection lost", as for a server that is down, and try again for ever.

. "$(dirname "$0")/lib.sh"

need java jar openssl python3
install_debian libzookeeper-java=3.8.0-11+deb12u2 libnetty-java=1:4.1.48-7+deb12u2 libslf4j-java=1.7.32-1 \
    libsnappy-java=1.1.8.3-1 libdropwizard-metrics-java=3.2.6-1 libcommons-io-java=2.11.0-2 libcommons-cli-java=1.5.0-1
jars=$debian/usr/share/java

# The manifest's jars, which it names by their places on an installed system.
unfold='BEGIN { RS = "\r?\n"; ORS = "" } /^ / { print substr($0, 2); next } { print "\n" $0 }'
as_installed=$jars/zookeeper.jar
for jar in $(cd "$scratch" && jar xf "$jars/zookeeper.jar" META-INF/MANIFEST.MF && awk "$unfold" META-INF/MANIFEST.MF |
    sed -n 's/^Class-Path: //p'); do
    as_installed=$as_installed:$debian$jar
done
case $as_installed in *netty-handler.jar*) echo "the class path names netty-handler.jar" ;; esac >>"$scratch/said"
case $as_installed in *netty-codec.jar*) echo "the class path names netty-codec.jar" ;; esac >>"$scratch/said"

openssl req -x509 -newkey rsa:2048 -nodes -keyout "$scratch/key" -out "$scratch/cert" -days 30 -subj /CN=localhost \
    >"$scratch/log" 2>&1
cat "$scratch/key" "$scratch/cert" >"$scratch/both.pem"

# try WORDS CLASSPATH
try()
{
    plain=$((20000 + $$ % 10000))
    secure=$((plain + 10000))
    rm -rf "$scratch/data"
    cat >"$scratch/zoo.cfg" <<END
tickTime=1000
dataDir=$scratch/data
clientPort=$plain
clientPortAddress=127.0.0.1
4lw.commands.whitelist=srvr
admin.enableServer=false
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
secureClientPort=$secure
secureClientPortAddress=127.0.0.1
ssl.clientAuth=none
ssl.keyStore.location=$scratch/both.pem
ssl.keyStore.type=PEM
ssl.trustStore.location=$scratch/both.pem
ssl.trustStore.type=PEM
END
    java -Xmx128m -Dzookeeper.jmx.log4j.disable=true -cp "$2" org.apache.zookeeper.server.quorum.QuorumPeerMain \
        "$scratch/zoo.cfg" >"$scratch/zookeeper.log" 2>&1 &
    server=$!
    servers="$server $servers"
    wait_for takes "$plain"
    wait_for takes "$secure"
    answers && say="answers" || say="does not answer"
    echo "$1: the plain port $say"
    timeout 20 openssl s_client -connect "127.0.0.1:$secure" </dev/null 2>&1 | grep -q 'Cipher is [^(]' &&
        say="comes up" || say="does not come up"
    echo "$1: TLS $say"
    kill "$server"
    wait "$server" 2>/dev/null || :
}

takes()
{
    python3 -c 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2)' "$1"
}

answers()
{
    python3 -c 'import socket, sys
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20)
server.sendall(b"srvr")
sys.exit(b"Mode" not in server.makefile("rb").read())' "$plain"
}

try "as installed" "$as_installed" >>"$scratch/said"
try "with netty-codec.jar and netty-resolver.jar" "$as_installed:$jars/netty-codec.jar:$jars/netty-resolver.jar" \
    >>"$scratch/said"

check "$scratch/said" <<'END'
the class path names netty-handler.jar
as installed: the plain port does not answer
as installed: TLS does not come up
with netty-codec.jar and netty-resolver.jar: the plain port answers
with netty-codec.jar and netty-resolver.jar: TLS comes up
END
