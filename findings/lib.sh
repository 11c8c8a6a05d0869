# Sourced by the findings. All that they install and start lives in $scratch and ends with the script.

set -eu
export LC_ALL=C
scratch=$(mktemp -d "${TMPDIR:-/tmp}/finding-XXXXXX")
servers=
clean()
{
    for server in $servers; do
        kill "$server" 2>/dev/null && wait "$server" 2>/dev/null || :
    done
    rm -rf "$scratch"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

give_up()
{
    echo "$*" >&2
    exit 2
}

need()
{
    for tool in "$@"; do
        command -v "$tool" >/dev/null || give_up "This finding needs $tool."
    done
}

# install_python NAME==VERSION...: $python then runs with these packages.
install_python()
{
    need python3
    python3 -m venv "$scratch/python" >"$scratch/log" 2>&1 || give_up "This finding needs python3-venv."
    "$scratch/python/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check "$@" >"$scratch/log" 2>&1 ||
        give_up "pip cannot install $*: $(tail -n 1 "$scratch/log")"
    python=$scratch/python/bin/python
}

# install_node NAME@VERSION...: programs in $node_folder then find these packages.
install_node()
{
    need node npm
    node_folder=$scratch/node
    mkdir "$node_folder"
    npm install --silent --no-audit --no-fund --cache "$scratch/npm" --prefix "$node_folder" "$@" >"$scratch/log" 2>&1 ||
        give_up "npm cannot install $*: $(tail -n 1 "$scratch/log")"
}

# install_java GROUP:ARTIFACT:VERSION...: run_java then runs a source file with these packages.
install_java()
{
    need java mvn
    {
        echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        echo '<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version><dependencies>'
        printf '%s\n' "$@" | sed 's|^|<dependency><groupId>|; s|:|</groupId><artifactId>|; s|:|</artifactId><version>|
            s|$|</version></dependency>|'
        echo '</dependencies></project>'
    } >"$scratch/pom.xml"
    mvn -q -B -f "$scratch/pom.xml" -Dmaven.repo.local="$scratch/maven" -DoutputDirectory="$scratch/java" \
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies >"$scratch/log" 2>&1 ||
        give_up "mvn cannot install $*: $(grep -m 1 ERROR "$scratch/log")"
}

# run_java FILE ARGUMENT...
run_java()
{
    java -cp "$scratch/java/*" "$@"
}

# install_debian NAME=VERSION...: $debian then has the files of these packages.
install_debian()
{
    debian=$scratch/debian
    mkdir "$debian"
    (cd "$debian" && apt-get -qq -o APT::Sandbox::User=root download "$@" && for file in *.deb; do dpkg -x "$file" .; done) \
        >"$scratch/log" 2>&1 || give_up "apt-get cannot download $*: $(tail -n 1 "$scratch/log")"
}

# wait_for COMMAND...: until it succeeds, for up to 30 s.
wait_for()
{
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || give_up "A server did not start."
        sleep 0.1
    done
}

# start_redis: a server of this machine's redis-server at the socket $redis.
start_redis()
{
    need redis-server redis-cli
    redis=$scratch/redis.sock
    redis-server --port 0 --unixsocket "$redis" --save '' --dir "$scratch" >"$scratch/redis.log" 2>&1 &
    servers="$! $servers"
    wait_for redis-cli -s "$redis" ping
    echo "redis-server $(redis-cli -s "$redis" info server | sed -n 's/^redis_version:\([^\r]*\).*/\1/p')"
}

# PostgreSQL, pgbouncer and MariaDB refuse to run as root: $other before a command makes it another user's. No function, whose
# shell would be what is ended in place of the server.
other=
[ "$(id -u)" != 0 ] || other="setpriv --reuid=nobody --regid=nogroup --clear-groups"

# start_postgres: of postgresql-15, on a socket in the folder $postgres, with everybody trusted.
start_postgres()
{
    install_debian postgresql-15=15.18-0+deb12u1 postgresql-client-15=15.18-0+deb12u1 "$@"
    bin=$debian/usr/lib/postgresql/15/bin
    "$bin/postgres" --version || give_up "This finding needs the libraries of Debian's postgresql-15."
    postgres=$scratch/postgres
    chmod 755 "$scratch"
    mkdir "$postgres"
    [ "$(id -u)" != 0 ] || chown nobody:nogroup "$postgres"
    # the programs are not where they were built for: the files of time zones and texts are beside them
    $other "$bin/initdb" -D "$postgres/data" -A trust -U postgres --locale=C -E UTF8 --no-sync >"$scratch/log" 2>&1 ||
        give_up "initdb: $(tail -n 1 "$scratch/log")"
    $other "$bin/postgres" -D "$postgres/data" -k "$postgres" -c listen_addresses= >"$scratch/postgres.log" 2>&1 &
    servers="$! $servers"
    wait_for "$bin/psql" -h "$postgres" -U postgres -c 'SELECT 1'
}

# start_mariadb: at the socket $mariadb, with everybody trusted.
start_mariadb()
{
    install_debian mariadb-server-core=1:10.11.19-0+deb12u1 liburing2=2.3-3 libaio1=0.3.113-4
    mkdir "$scratch/mariadb"
    chmod 755 "$scratch"
    [ "$(id -u)" != 0 ] || chown nobody:nogroup "$scratch/mariadb"
    mariadb=$scratch/mariadb/socket
    libraries=$debian/usr/lib/$(uname -m)-linux-gnu:$debian/lib/$(uname -m)-linux-gnu
    # in a folder of temporary files that is shared, a server that starts deletes the tables of others
    $other env TMPDIR="$scratch/mariadb" LD_LIBRARY_PATH="$libraries" "$debian/usr/sbin/mariadbd" --no-defaults --skip-grant-tables --skip-networking \
        --datadir="$scratch/mariadb" --socket="$mariadb" --lc-messages-dir="$debian/usr/share/mysql" \
        >"$scratch/mariadb.log" 2>&1 &
    servers="$! $servers"
    wait_for grep -q 'ready for connections' "$scratch/mariadb.log"
    sed -n 's/.*Version: .\([0-9.]*-MariaDB\).*/\1/p' "$scratch/mariadb.log"
}

# check SAID: succeeds if the file has the lines of the standard input.
check()
{
    cat "$1"
    cat >"$scratch/found"
    diff -u "$scratch/found" "$1" >"$scratch/difference" || {
        echo
        echo "This has changed since it was found:"
        sed 1,2d "$scratch/difference"
        exit 1
    }
    echo
    echo "As it was found."
}
