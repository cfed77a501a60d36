//! Everything that is done before load: the scenario is read and checked, then this machine and the target.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};

use super::embedded::Embedded;
use super::error::AppError;
use crate::cli::ScenarioArgs;
use crate::clock::RunClock;
use crate::scenario::{self, Place, Plan, Problem, Token, UserIx};
use crate::sources::limits;
use crate::verdict::Threshold;
use crate::wire::{self, ConnectError, Endpoint, EndpointConfig, Identity, TokenSource, UpgradeError};

/// A scenario that makes sense, with its thresholds.
#[derive(Debug)]
pub struct Prepared {
    pub plan: Arc<Plan>,
    pub thresholds: Vec<Threshold>,
    /// The scenario after `--set`, with all defaults.
    pub as_run: serde_json::Value,
}

impl Prepared {
    pub fn load(args: &ScenarioArgs) -> Result<Self, AppError> {
        let path = &args.scenario;
        let text = fs::read_to_string(path).map_err(|source| AppError::Read { path: path.clone(), source })?;
        let seed = args.seed.unwrap_or_else(|| RunClock::start().origin().0 & 0xFFFF_FFFF);
        let mut loaded = scenario::load(&text, &path.display().to_string(), &args.sets, seed);
        let mut thresholds = Vec::with_capacity(loaded.thresholds.len());
        for (i, expression) in loaded.thresholds.iter().enumerate() {
            match Threshold::parse(expression) {
                Ok(threshold) => thresholds.push(threshold),
                Err(error) => {
                    let message = format!("the threshold '{expression}' {error}");
                    loaded.problems.push(Problem::of(&loaded.origins, &format!("thresholds[{i}]"), message));
                }
            }
        }
        match loaded.plan {
            Some(plan) if loaded.problems.is_empty() => {
                Ok(Self { plan: Arc::new(plan), thresholds, as_run: loaded.as_run })
            }
            _ => Err(AppError::Scenario(loaded.problems)),
        }
    }

    /// Checks limits, starts the embedded server if that is the target, and opens one connection to see that it works.
    pub fn preflight(&self) -> Result<Target, AppError> {
        let plan = &self.plan;
        let embedded = matches!(plan.target.place, Place::Embedded { .. });
        let addresses = plan.target.source_ips.len().max(1) as u64;
        let connections = u64::from(plan.topology.device_count()) + plan.abandoned_connections();
        limits::check(connections, addresses, plan.generator.shards.into(), embedded)?;
        let server = match &plan.target.place {
            Place::Embedded { faults } => Some(Embedded::start(faults.clone()).map_err(AppError::Embedded)?),
            Place::Url(_) => None,
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(AppError::Runtime)?;
        let endpoint = runtime.block_on(async {
            let deadline = Instant::now() + plan.target.connect_timeout;
            let endpoints = Endpoint::prepare(endpoint_config(plan, server.as_ref())).await?;
            first_that_answers(plan, endpoints, deadline).await
        })?;
        Ok(Target { runtime, endpoint, server })
    }
}

/// A target that has answered.
#[derive(Debug)]
pub struct Target {
    pub runtime: Runtime,
    pub endpoint: Endpoint,
    /// Ends when dropped.
    pub server: Option<Embedded>,
}

impl Target {
    pub fn address(&self) -> SocketAddr {
        self.endpoint.address
    }
}

fn endpoint_config<'a>(plan: &'a Plan, server: Option<&'a Embedded>) -> EndpointConfig<'a> {
    let target = &plan.target;
    let url = match (&target.place, server) {
        (Place::Url(url), _) => url.as_str(),
        (Place::Embedded { .. }, server) => server.map_or("", Embedded::url),
    };
    EndpointConfig {
        url,
        codec: wire::protocol(target.protocol.name()).expect("every protocol of a plan is in the list of protocols"),
        headers: &target.headers,
        query: if server.is_some() && target.query.is_empty() { Embedded::query() } else { &target.query },
        tokens: target.token.as_ref().map(|token| match token {
            Token::Command(line) => TokenSource::Command(line.clone()),
            Token::Url(url) => TokenSource::Url(url.clone()),
        }),
        connect_timeout: target.connect_timeout,
        source_ips: &target.source_ips,
        ca_file: target.ca_file.as_deref(),
        max_frame_bytes: target.max_frame_bytes,
    }
}

/// A name may have several addresses, of which only some are served.
async fn first_that_answers(plan: &Plan, endpoints: Vec<Endpoint>, deadline: Instant) -> Result<Endpoint, AppError> {
    let mut failure = None;
    for endpoint in endpoints {
        match try_once(plan, &endpoint, deadline).await {
            Ok(()) => return Ok(endpoint),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.map_or_else(|| AppError::Runtime(std::io::ErrorKind::AddrNotAvailable.into()), AppError::Unreachable))
}

/// Opens and closes the first user's connection. A server that says it is busy is there all the same.
async fn try_once(plan: &Plan, endpoint: &Endpoint, deadline: Instant) -> Result<(), ConnectError> {
    let name = plan.topology.user_name(UserIx(0));
    let mut fields = plan.topology.fields_of(UserIx(0));
    let token = match &endpoint.tokens {
        Some(tokens) => {
            let identity = Identity { user: &name, device: 0, fields: &fields };
            let fetched = tokens.fetch(identity, deadline.saturating_duration_since(Instant::now())).await;
            Some(fetched.map_err(|source| ConnectError::Token { source })?)
        }
        None => None,
    };
    fields.extend(token.as_deref().map(|token| ("token", token)));
    let identity = Identity { user: &name, device: 0, fields: &fields };
    match wire::open(endpoint, identity, endpoint.source_ip(0), deadline).await {
        Ok((socket, _)) => {
            let _ = tokio::time::timeout_at(deadline.into(), socket.close()).await;
            Ok(())
        }
        Err(ConnectError::Upgrade { source: UpgradeError::Status { status: 429 | 503, .. }, .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
