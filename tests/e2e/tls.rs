//! Encrypted targets: the same account of every message, the handshake timed, and distrust that says why.

use uproar_tests::{MockServer, Run, Scenario, TlsProxy, alone};

#[test]
fn a_run_over_tls_loses_nothing_and_times_the_handshake() {
    let _alone = alone();
    let server = MockServer::healthy();
    let proxy = TlsProxy::before(server.address());
    let thresholds = vec!["deliveries.missing == 0", "connect_tls.count == 9", "connect_tcp.count == 9"];
    let scenario = Scenario { mix: (1, 0, 1), thresholds, ..Scenario::against(proxy.url()) };
    let result = Run::scenario(&scenario).set("target.ca_file", proxy.ca_file().to_str().expect("UTF-8")).run();
    result.check_exit(0, "pass");
    result.assert_identities();
    let truth = server.stop();
    result.check_eq(result.count("deliveries.delivered"), truth.count("pushed"), "delivered");
}

#[test]
fn a_certificate_that_nobody_vouches_for_ends_with_the_cause() {
    let _alone = alone();
    let server = MockServer::healthy();
    let proxy = TlsProxy::before(server.address());
    let result = Run::scenario(&Scenario::against(proxy.url())).run();
    result.check_eq(result.exit_code, 4, "exit code");
    let stderr = result.stderr.to_lowercase();
    result.check(stderr.contains("tls") && stderr.contains("certificate"), "the message names the certificate");
}
