//! How bytes look: sockets, ids and codecs. Knows nothing of plans, users or accounts; what it hears goes to the engine.

mod binary;
mod codec;
mod connect;
mod endpoint;
mod failure;
mod frame;
mod framing;
mod id;
mod json;
mod socket;
mod tokens;
mod transport;
mod upgrade;

pub use codec::{Codec, PROTOCOLS, Payload, protocol};
pub use connect::{OpenTimes, open};
pub use endpoint::{Endpoint, EndpointConfig, EndpointError, Identity};
pub use failure::{ConnectError, DropCause, FailureKind, Violation};
pub use frame::{Incoming, MessageKind, Outgoing};
pub use framing::{Assembler, Frame, Kind, push_frame};
pub use id::{MAX_SEQ, MsgId, Token};
pub use socket::{Heard, Scratch, Socket};
pub use tokens::{TokenError, TokenSource};
pub use upgrade::{Flaw, UpgradeError};
