#!/bin/sh
# etcd: an alarm that is ended for all members is answered without an error, and is still there.
#
# Expected: a request about alarms names a member, or all of them by the number 0, as rpc.proto documents it.  So DEACTIVATE
#   without a number ends the alarm NOSPACE, whoever has raised it.
# Found: the answer is HTTP status 200 and names no alarm, as if there had been none, and the alarm goes on: writes are
#   refused as before.  With the number of the member it ends.  GET takes 0 for all members.
# Where: etcd 3.4.23, by the JSON gateway.  etcdctl asks for the alarms first, and ends each by its number.
# Why it matters: whoever has compacted and defragmented a full store, and ends the alarm by the interface as it is
#   documented, has every reason to believe that locks and leases can be had again.  They cannot.

. "$(dirname "$0")/lib.sh"

need curl
install_debian etcd-server=3.4.23-4+b4
port=$((20000 + $$ % 10000))
"$debian/usr/bin/etcd" --data-dir "$scratch/data" --listen-client-urls "http://127.0.0.1:$port" \
    --advertise-client-urls "http://127.0.0.1:$port" --listen-peer-urls "http://127.0.0.1:$((port + 1))" \
    --initial-advertise-peer-urls "http://127.0.0.1:$((port + 1))" \
    --initial-cluster "default=http://127.0.0.1:$((port + 1))" >"$scratch/etcd.log" 2>&1 &
servers="$servers $!"
wait_for curl -fsS "http://127.0.0.1:$port/health"

# ask PATH BODY: prints the status and the answer without its header.
ask()
{
    curl -sS -w ' %{http_code}\n' -d "$2" "http://127.0.0.1:$port/v3/$1" |
        sed 's/{"header":{[^}]*},*/{/; s/"memberID":"[0-9]*"/"memberID":"THE MEMBER"/'
}

member=$(curl -sS -d '{}' "http://127.0.0.1:$port/v3/maintenance/status" | sed 's/.*"member_id":"\([0-9]*\)".*/\1/')
{
    echo "ACTIVATE:           $(ask maintenance/alarm "{\"action\":\"ACTIVATE\",\"alarm\":\"NOSPACE\",\"memberID\":\"$member\"}")"
    echo "DEACTIVATE for all: $(ask maintenance/alarm '{"action":"DEACTIVATE","alarm":"NOSPACE"}')"
    echo "GET for all:        $(ask maintenance/alarm '{"action":"GET"}')"
    echo "put:                $(ask kv/put '{"key":"bG9jaw==","value":"eA=="}')"
    echo "DEACTIVATE for one: $(ask maintenance/alarm "{\"action\":\"DEACTIVATE\",\"alarm\":\"NOSPACE\",\"memberID\":\"$member\"}")"
    echo "GET for all:        $(ask maintenance/alarm '{"action":"GET"}')"
    echo "put:                $(ask kv/put '{"key":"bG9jaw==","value":"eA=="}')"
} >"$scratch/said"

check "$scratch/said" <<'END'
ACTIVATE:           {"alarms":[{"memberID":"THE MEMBER","alarm":"NOSPACE"}]} 200
DEACTIVATE for all: {} 200
GET for all:        {"alarms":[{"memberID":"THE MEMBER","alarm":"NOSPACE"}]} 200
put:                {"error":"etcdserver: mvcc: database space exceeded","message":"etcdserver: mvcc: database space exceeded","code":8} 429
DEACTIVATE for one: {"alarms":[{"memberID":"THE MEMBER","alarm":"NOSPACE"}]} 200
GET for all:        {} 200
put:                {} 200
END
