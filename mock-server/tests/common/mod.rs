//! A client on tokio-tungstenite, so that the server is judged by another implementation of WebSocket.

// Each test binary uses a part of it, and fails by panicking.
#![allow(dead_code, clippy::unwrap_used)]

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use mock_server::{Config, Server, Truth};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Far beyond what anything here takes.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub async fn start(faults: &[&str]) -> Server {
    let faults = faults.iter().map(|text| text.parse().unwrap()).collect();
    Server::start(Config { listen: "127.0.0.1:0".parse().unwrap(), faults }).await.unwrap()
}

/// Waits until the truth looks as wanted.
pub async fn until(server: &Server, wanted: impl Fn(&Truth) -> bool) -> Truth {
    let looking = async {
        loop {
            let truth = server.truth();
            if wanted(&truth) {
                return truth;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    match timeout(PATIENCE, looking).await {
        Ok(truth) => truth,
        Err(_) => panic!("never came true: {:#?}", server.truth()),
    }
}

#[derive(Debug)]
pub struct Client {
    pub socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    pub user: String,
}

impl Client {
    pub async fn connect(server: &Server, token: &str) -> Self {
        let (socket, _) = connect_async(format!("ws://{}/ws?token={token}", server.addr())).await.unwrap();
        Self { socket, user: token.split('.').next().unwrap().to_owned() }
    }

    pub async fn connect_binary(server: &Server, token: &str) -> Self {
        let mut request = format!("ws://{}/?token={token}", server.addr()).into_client_request().unwrap();
        request.headers_mut().insert("Sec-WebSocket-Protocol", "uproar.binary.v1".parse().unwrap());
        let (socket, response) = connect_async(request).await.unwrap();
        assert_eq!(response.headers()["Sec-WebSocket-Protocol"], "uproar.binary.v1");
        Self { socket, user: token.to_owned() }
    }

    pub async fn send(&mut self, json: &Value) {
        self.socket.send(Message::text(json.to_string())).await.unwrap();
    }

    pub fn message(&self, kind: &str, to: &str, id: &str, content: &str) -> Value {
        json!({"type": kind, "msgId": id, "from": self.user, "to": to, "content": content, "timestamp": 1})
    }

    pub async fn chat(&mut self, to: &str, id: &str, content: &str) {
        self.send(&self.message("chat", to, id, content)).await;
    }

    pub async fn next(&mut self) -> Result<Message, Error> {
        let next = timeout(PATIENCE, self.socket.next()).await.expect("nothing came");
        next.unwrap_or(Err(Error::ConnectionClosed))
    }

    pub async fn json(&mut self) -> Value {
        match self.next().await.unwrap() {
            Message::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("not text: {other:?}"),
        }
    }

    pub async fn binary(&mut self) -> Vec<u8> {
        match self.next().await.unwrap() {
            Message::Binary(bytes) => bytes.to_vec(),
            other => panic!("not binary: {other:?}"),
        }
    }

    /// Asks for the answer to this request.
    pub async fn ask(&mut self, json: &Value) -> Value {
        self.send(json).await;
        self.json().await
    }

    pub async fn join(&mut self, room: &str) -> u64 {
        let answer = self.ask(&json!({"type": "join", "room": room})).await;
        assert_eq!((&answer["type"], &answer["room"]), (&json!("joined"), &json!(room)));
        answer["members"].as_u64().unwrap()
    }

    /// All that came before the answer to a ping sent now: what the server has queued so far for this device.
    pub async fn so_far(&mut self) -> Vec<Value> {
        self.send(&json!({"type": "ping", "seq": 77})).await;
        let mut got = Vec::new();
        loop {
            let json = self.json().await;
            if json == json!({"type": "pong", "seq": 77}) {
                return got;
            }
            got.push(json);
        }
    }

    /// The pushes among what came so far.
    pub async fn pushes(&mut self) -> Vec<Value> {
        let mut got = self.so_far().await;
        got.retain(|json| json["type"] != "ack");
        got
    }

    /// The code of the close frame that ends the connection, if one does.
    pub async fn close_code(&mut self) -> Option<u16> {
        loop {
            match self.next().await {
                Ok(Message::Close(frame)) => return frame.map(|frame| frame.code.into()),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

/// What an HTTP answer to the handshake says: status and the named header.
pub async fn refused(request: impl IntoClientRequest + Unpin, header: &str) -> (u16, Option<String>) {
    match connect_async(request).await {
        Err(Error::Http(response)) => {
            let value = response.headers().get(header).map(|value| value.to_str().unwrap().to_owned());
            (response.status().as_u16(), value)
        }
        other => panic!("not refused: {other:?}"),
    }
}
