// SPDX-License-Identifier: BSD-2-Clause
//! The adapter of bench/peers for rslock. README.md in the folder above has the commands and answers.
use rslock::{Lock, LockManager};
use std::fs::OpenOptions;
use std::io::{stdin, stdout, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

const LEASE_MS: u64 = 10000;

/// One lock as one owner, with the crate's default delays between tries.
struct Owner {
    manager: LockManager,
    name: String,
    lease: Duration,
}

fn connect() -> LockManager {
    let port = std::env::var("BENCH_PORT").expect("BENCH_PORT");
    LockManager::new(vec![format!("redis://127.0.0.1:{port}/")])
}

impl Owner {
    fn new(name: &str, lease_ms: u64) -> Owner {
        Owner::of(connect(), name, lease_ms)
    }

    fn of(manager: LockManager, name: &str, lease_ms: u64) -> Owner {
        Owner { manager, name: name.to_string(), lease: Duration::from_millis(lease_ms) }
    }

    /// The crate gives up after some tries, so we start again.
    async fn lock(&self) -> Lock {
        loop {
            if let Ok(lock) = self.manager.lock(self.name.as_bytes(), self.lease).await {
                return lock;
            }
        }
    }

    async fn pair(&self) {
        let lock = self.lock().await;
        self.manager.unlock(&lock).await;
    }
}

fn say(text: &str) {
    println!("{text}");
    stdout().flush().unwrap();
}

fn await_go() -> bool {
    let mut line = String::new();
    stdin().read_line(&mut line).unwrap() > 0
}

fn say_ready_and_await_go() {
    say("ready");
    await_go();
}

async fn pairs_for(owner: &Owner, start: Instant, seconds: f64) -> u64 {
    let mut pairs = 0;
    while start.elapsed().as_secs_f64() < seconds {
        owner.pair().await;
        pairs += 1;
    }
    pairs
}

async fn pair(words: &[String]) {
    let owner = Owner::new("pair", LEASE_MS);
    let seconds: f64 = words[0].parse().unwrap();
    say("ready");
    while await_go() {
        let start = Instant::now();
        let pairs = pairs_for(&owner, start, seconds).await;
        say(&format!("{} {}", pairs, start.elapsed().as_secs_f64()));
    }
}

/// Tasks of one manager, which has one connection.
async fn pairs(words: &[String]) {
    let manager = connect();
    let count: usize = words[1].parse().unwrap();
    let owners: Vec<_> =
        (0..count).map(|i| Arc::new(Owner::of(manager.clone(), &format!("pairs-{i}"), LEASE_MS))).collect();
    let seconds: f64 = words[0].parse().unwrap();
    say("ready");
    while await_go() {
        let start = Instant::now();
        let tasks: Vec<_> = owners
            .iter()
            .cloned()
            .map(|owner| tokio::spawn(async move { pairs_for(&owner, start, seconds).await }))
            .collect();
        let mut pairs = 0;
        for task in tasks {
            pairs += task.await.unwrap();
        }
        say(&format!("{} {}", pairs, start.elapsed().as_secs_f64()));
    }
}

async fn contend(words: &[String]) {
    let owner = Owner::new(&words[1], LEASE_MS);
    let seconds: f64 = words[0].parse().unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&words[2]).unwrap();
    let own = [words[3].parse::<u8>().unwrap()];
    let (mut last, mut acquired, mut handovers) = ([0u8], 0, 0);

    owner.pair().await;
    say_ready_and_await_go();
    let start = Instant::now();
    loop {
        let lock = owner.lock().await;
        if start.elapsed().as_secs_f64() >= seconds {
            owner.manager.unlock(&lock).await;
            break;
        }
        file.read_exact_at(&mut last, 0).unwrap();
        if last != own {
            file.write_all_at(&own, 0).unwrap();
            handovers += 1;
        }
        owner.manager.unlock(&lock).await;
        acquired += 1;
    }
    say(&format!("{acquired} {handovers}"));
}

async fn hold(words: &[String]) {
    let owner = Owner::new(&words[0], words[1].parse().unwrap());
    let _lock = owner.lock().await;
    say("held");
    tokio::time::sleep(Duration::from_secs(1_000_000)).await;
}

async fn wait(words: &[String]) {
    let owner = Owner::new(&words[0], words[1].parse().unwrap());
    say_ready_and_await_go();
    let _lock = owner.lock().await;
    say("got");
}

async fn idle(words: &[String]) {
    for _ in 0..words[2].parse::<usize>().unwrap() {
        let owner = Owner::new(&words[0], words[1].parse().unwrap());
        tokio::spawn(async move {
            owner.lock().await;
        });
    }
    tokio::task::spawn_blocking(say_ready_and_await_go).await.unwrap();
}

async fn run(words: &[String]) {
    match words[0].as_str() {
        "pair" => pair(&words[1..]).await,
        "pairs" => pairs(&words[1..]).await,
        "contend" => contend(&words[1..]).await,
        "hold" => hold(&words[1..]).await,
        "wait" => wait(&words[1..]).await,
        "idle" => idle(&words[1..]).await,
        "version" => say(&format!("rslock {}", std::env::var("RSLOCK_VERSION").unwrap_or_default())),
        _ => std::process::exit(2),
    }
    std::process::exit(0);
}

/// Tasks run on as many threads as Tokio has by default, clients with one lock on one thread.
fn main() {
    let words: Vec<String> = std::env::args().skip(2).collect();
    let mut builder = Builder::new_multi_thread();
    if words[0] != "pairs" {
        builder.worker_threads(1);
    }
    builder.enable_all().build().unwrap().block_on(run(&words));
}
