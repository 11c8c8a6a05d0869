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
    servers="$servers $!"
    wait_for redis-cli -s "$redis" ping
    echo "redis-server $(redis-cli -s "$redis" info server | sed -n 's/^redis_version:\([^\r]*\).*/\1/p')"
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
