// SPDX-License-Identifier: BSD-2-Clause
//! The adapter of bench/peers for rslock. README.md in the folder above has the commands and answers.
use rslock::{Lock, LockManager};
use std::fs::OpenOptions;
use std::io::{stdin, stdout, Write};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

const LEASE_MS: u64 = 10000;

/// One lock as one owner, with the crate's default delays between tries.
struct Owner {
    manager: LockManager,
    name: String,
    lease: Duration,
}

impl Owner {
    fn new(name: &str, lease_ms: u64) -> Owner {
        let port = std::env::var("BENCH_PORT").expect("BENCH_PORT");
        Owner {
            manager: LockManager::new(vec![format!("redis://127.0.0.1:{port}/")]),
            name: name.to_string(),
            lease: Duration::from_millis(lease_ms),
        }
    }

    /// The crate gives up after some tries; begin again.
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

async fn pairs_for(owner: &Owner, seconds: f64) -> String {
    let start = Instant::now();
    let mut pairs = 0;
    while start.elapsed().as_secs_f64() < seconds {
        owner.pair().await;
        pairs += 1;
    }
    format!("{} {}", pairs, start.elapsed().as_secs_f64())
}

async fn pair(words: &[String]) {
    let owner = Owner::new("pair", LEASE_MS);
    let seconds: f64 = words[0].parse().unwrap();
    say("ready");
    while await_go() {
        say(&pairs_for(&owner, seconds).await);
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

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() {
    let words: Vec<String> = std::env::args().skip(2).collect();
    match words[0].as_str() {
        "pair" => pair(&words[1..]).await,
        "contend" => contend(&words[1..]).await,
        "hold" => hold(&words[1..]).await,
        "wait" => wait(&words[1..]).await,
        "idle" => idle(&words[1..]).await,
        "version" => say(&format!("rslock {}", std::env::var("RSLOCK_VERSION").unwrap_or_default())),
        _ => std::process::exit(2),
    }
    std::process::exit(0);
}
