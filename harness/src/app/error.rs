//! Why a command could not be carried out, in words for people, and with which exit code.

use std::io;
use std::path::PathBuf;

use super::Exit;
use crate::engine::EngineError;
use crate::scenario::Problems;
use crate::sources::limits::Shortage;
use crate::wire::{ConnectError, EndpointError};

#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error("cannot read scenario {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{0}")]
    Scenario(Problems),
    #[error("{path} already holds a run; choose another folder with --out, or remove it")]
    Occupied { path: PathBuf },
    #[error("cannot write results to {path}: {source}")]
    Results { path: PathBuf, source: io::Error },
    #[error("cannot start: {0}")]
    Shortage(#[from] Shortage),
    #[error("cannot start: {0}")]
    Endpoint(#[from] EndpointError),
    #[error("cannot start: {0}")]
    Unreachable(#[from] ConnectError),
    #[error("cannot start the embedded server: {0}")]
    Embedded(io::Error),
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
}

impl AppError {
    pub fn exit(&self) -> Exit {
        match self {
            Self::Read { .. } | Self::Scenario(_) | Self::Occupied { .. } => Exit::Usage,
            _ => Exit::Aborted,
        }
    }
}
