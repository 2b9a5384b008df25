//! Invitations, accounts and sessions: random sequences of commands against a naive model, with crashes in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anteroom_node::AskError;
use anteroom_node::commands::accounts::{
    AccountChange, AccountCommand, AccountError, AccountRequest, Credential, NewSession, SESSION_NANOS,
};
use anteroom_node::commands::{AdminCommand, AdminRequest, Caller, CallerKind};
use common::{Home, NOW, caller};
use engine::access::KeyRole;
use model::{Nanos, payload::MemberRole};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use store::shared::accounts::{Invitation, Passkey, SecretHash, SessionId, session_id};

const HOUR: u64 = 3600 * Nanos::SECOND;
const USERS: [&str; 3] = ["ann", "bob", "operator"];
const SESSIONS_MAX: usize = 50;

#[derive(Clone, Debug)]
enum Step {
    Invite { by_admin: bool, link: u8, uses: u32, hours: u64 },
    Uninvite { link: u8 },
    Join { link: u8, user: usize, password: u8 },
    SignIn { user: usize, password: u8, times: usize },
    SignInByPasskey { user: usize, passkey: u8, is_other_host: bool },
    SignOut { user: usize, of: usize, which: usize },
    SignOutOthers { user: usize, which: usize },
    Touch { user: usize, which: usize },
    Password { user: usize, password: u8 },
    AddPasskey { user: usize, passkey: u8 },
    ForgetPasskey { user: usize, passkey: u8 },
    Admit { user: usize },
    Remove { user: usize },
    Later { hours: u64 },
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let user = || 0..USERS.len();
    let invite = (prop::bool::weighted(0.8), 0..3_u8, 1..3_u32, 1..40_u64);
    let sign_in = (user(), 0..2_u8, prop_oneof![9 => Just(1_usize), 1 => Just(SESSIONS_MAX + 3)]);
    let passkey_in = (user(), 0..2_u8, prop::bool::weighted(0.2));
    prop_oneof![
        4 => invite.prop_map(|(by_admin, link, uses, hours)| Step::Invite { by_admin, link, uses, hours }),
        1 => (0..3_u8).prop_map(|link| Step::Uninvite { link }),
        6 => (0..3_u8, user(), 0..2_u8).prop_map(|(link, user, password)| Step::Join { link, user, password }),
        6 => sign_in.prop_map(|(user, password, times)| Step::SignIn { user, password, times }),
        3 => passkey_in.prop_map(|(user, passkey, is_other_host)| Step::SignInByPasskey { user, passkey, is_other_host }),
        2 => (user(), user(), 0..9_usize).prop_map(|(user, of, which)| Step::SignOut { user, of, which }),
        1 => (user(), 0..9_usize).prop_map(|(user, which)| Step::SignOutOthers { user, which }),
        5 => (user(), 0..9_usize).prop_map(|(user, which)| Step::Touch { user, which }),
        2 => (user(), 0..2_u8).prop_map(|(user, password)| Step::Password { user, password }),
        3 => (user(), 0..2_u8).prop_map(|(user, passkey)| Step::AddPasskey { user, passkey }),
        3 => (user(), 0..2_u8).prop_map(|(user, passkey)| Step::ForgetPasskey { user, passkey }),
        1 => user().prop_map(|user| Step::Admit { user }),
        1 => user().prop_map(|user| Step::Remove { user }),
        2 => prop_oneof![3 => 1..30_u64, 1 => Just(31 * 24)].prop_map(|hours| Step::Later { hours }),
        1 => Just(Step::Crash),
    ]
}

fn hash(text: &str) -> SecretHash {
    *blake3::hash(text.as_bytes()).as_bytes()
}

fn link_hash(link: u8) -> SecretHash {
    hash(&format!("link {link}"))
}

fn password_hash(password: u8) -> String {
    format!("hash of {password}")
}

fn passkey(number: u8, host: &str) -> Passkey {
    let (host, label) = (host.to_owned(), "a browser".to_owned());
    Passkey { id: vec![number], host, label, since: NOW, used: NOW, key: b"{}".to_vec() }
}

fn admin() -> Caller {
    Caller { kind: CallerKind::Key(KeyRole::Admin), ..caller("alice") }
}

/// What is known of a user.
#[derive(Clone, Default, PartialEq, Debug)]
struct Known {
    is_gone: bool,
    has_account: bool,
    password: Option<String>,
    passkeys: BTreeSet<u8>,
    /// Each session, and when it was last used.
    sessions: BTreeMap<SessionId, u64>,
}

/// Everything that is known: written down as plainly as it is promised.
#[derive(Default)]
struct Model {
    users: BTreeMap<usize, Known>,
    /// Until when, how many may still come, and who made it.
    links: BTreeMap<SecretHash, (u64, u32)>,
}

impl Model {
    fn here(&mut self, user: usize) -> Option<&mut Known> {
        self.users.get_mut(&user).filter(|known| !known.is_gone)
    }

    /// A new session ends those that were quiet for a month, and the most quiet of too many.
    fn add_session(&mut self, user: usize, id: SessionId, now: u64) {
        let known = self.users.get_mut(&user).unwrap();
        known.sessions.retain(|_, seen| *seen + SESSION_NANOS >= now);
        while known.sessions.len() >= SESSIONS_MAX {
            let quiet = *known.sessions.iter().min_by_key(|(_, seen)| **seen).unwrap().0;
            known.sessions.remove(&quiet);
        }
        known.sessions.insert(id, now);
    }
}

struct Trial {
    home: Home,
    model: Model,
    now: u64,
    browsers: u64,
}

/// What an answer was, in a word.
fn word(answer: &Result<(), AskError<AccountError>>) -> &'static str {
    match answer {
        Ok(()) => "done",
        Err(AskError::Refused(AccountError::InvitationEnded)) => "ended",
        Err(AskError::Refused(AccountError::NameTaken(_))) => "taken",
        Err(AskError::Refused(AccountError::Unknown(what))) => what,
        Err(AskError::Refused(AccountError::LastWay)) => "last way",
        Err(AskError::Refused(AccountError::Command(_))) => "denied",
        Err(other) => panic!("{other:?}"),
    }
}

impl Trial {
    fn ask(&self, what: AccountCommand) -> &'static str {
        let space = self.home.space;
        word(&self.home.core.ask(AccountRequest { space, what }, Nanos(self.now)))
    }

    fn browser(&mut self, user: usize) -> (NewSession, SessionId) {
        self.browsers += 1;
        let hash = hash(&format!("browser {}", self.browsers));
        let prefix = self.home.core.store().snapshot().unwrap().session_prefix(&self.home.space, USERS[user]);
        (NewSession { hash, agent: "a browser".to_owned() }, session_id(&prefix, &hash))
    }

    /// A session of a user, or one that there never was.
    fn pick(&self, user: usize, which: usize) -> SessionId {
        let known: Vec<SessionId> =
            self.model.users.get(&user).map(|known| known.sessions.keys().copied().collect()).unwrap_or_default();
        known.get(which % (known.len() + 1)).copied().unwrap_or([9; 48])
    }

    fn sign_in(&mut self, user: usize, proven: Credential, is_good: bool) {
        let (browser, id) = self.browser(user);
        let said = self.ask(AccountCommand::SignIn { user: USERS[user].to_owned(), proven, browser });
        assert_eq!(said, if is_good { "done" } else { "account" });
        if is_good {
            self.model.add_session(user, id, self.now);
        }
    }

    fn invite(&mut self, by_admin: bool, link: u8, uses: u32, hours: u64) {
        let ends_at = self.now + hours * HOUR;
        let by = if by_admin { "alice" } else { "guest" };
        let (since, ends) = (Nanos(self.now), Nanos(ends_at));
        let invitation = Invitation::new(MemberRole::Member, by.to_owned(), String::new(), since, ends, uses);
        let who = if by_admin { admin() } else { caller(by) };
        let said = self.ask(AccountCommand::Invite(who, link_hash(link), invitation));
        assert_eq!(said, if by_admin { "done" } else { "denied" });
        if by_admin {
            let now = self.now;
            self.model.links.retain(|_, (until, _)| now < *until);
            self.model.links.insert(link_hash(link), (ends_at, uses));
        }
    }

    fn join(&mut self, link: u8, user: usize, password: u8) {
        let (browser, id) = self.browser(user);
        let random = Box::new(hash(&format!("identity {} {}", self.browsers, USERS[user])));
        let (invitation, way) = (link_hash(link), Credential::Password(password_hash(password)));
        let said = self.ask(AccountCommand::Join { invitation, user: USERS[user].to_owned(), way, browser, random });
        let now = self.now;
        let good = self.model.links.get_mut(&invitation).filter(|(until, _)| now < *until);
        let Some((_, uses)) = good else {
            return assert_eq!(said, "ended");
        };
        if self.model.users.contains_key(&user) || USERS[user] == "operator" {
            return assert_eq!(said, "taken");
        }
        assert_eq!(said, "done");
        *uses -= 1;
        if *uses == 0 {
            self.model.links.remove(&invitation);
        }
        let password = Some(password_hash(password));
        self.model.users.insert(user, Known { has_account: true, password, ..Known::default() });
        self.model.add_session(user, id, now);
    }

    fn change(&mut self, user: usize, change: AccountChange) -> &'static str {
        self.ask(AccountCommand::Change(USERS[user].to_owned(), Box::new(change)))
    }

    fn forget_passkey(&mut self, user: usize, passkey: u8) {
        let said = self.change(user, AccountChange::ForgetPasskey(vec![passkey]));
        let Some(known) = self.model.here(user) else {
            return assert_eq!(said, "user");
        };
        let is_only = known.passkeys.len() == 1 && known.password.is_none() && USERS[user] != "operator";
        match known.passkeys.contains(&passkey) {
            false => assert_eq!(said, "passkey"),
            true if is_only => assert_eq!(said, "last way"),
            true => {
                assert_eq!(said, "done");
                known.passkeys.remove(&passkey);
            }
        }
    }

    fn add_passkey(&mut self, user: usize, number: u8) {
        let said = self.change(user, AccountChange::AddPasskey(passkey(number, "here")));
        let Some(known) = self.model.here(user) else {
            return assert_eq!(said, "user");
        };
        assert_eq!(said, "done");
        known.has_account = true;
        known.passkeys.insert(number);
    }

    fn change_password(&mut self, user: usize, password: u8) {
        let said = self.change(user, AccountChange::Password(password_hash(password)));
        let Some(known) = self.model.here(user) else {
            return assert_eq!(said, "user");
        };
        assert_eq!(said, "done");
        known.has_account = true;
        known.password = Some(password_hash(password));
    }

    fn sign_out(&mut self, user: usize, of: usize, which: usize) {
        let id = self.pick(of, which);
        let said = self.ask(AccountCommand::SignOut(USERS[user].to_owned(), id));
        let was_there = self.model.users.get_mut(&user).is_some_and(|known| known.sessions.remove(&id).is_some());
        assert_eq!(said, if was_there { "done" } else { "session" });
    }

    fn sign_out_others(&mut self, user: usize, which: usize) {
        let id = self.pick(user, which);
        assert_eq!(self.ask(AccountCommand::SignOutOthers(USERS[user].to_owned(), id)), "done");
        if let Some(known) = self.model.users.get_mut(&user) {
            known.sessions.retain(|other, _| *other == id);
        }
    }

    fn touch(&mut self, user: usize, which: usize) {
        let id = self.pick(user, which);
        assert_eq!(self.ask(AccountCommand::Touch(id)), "done");
        if let Some(seen) = self.model.users.get_mut(&user).and_then(|known| known.sessions.get_mut(&id)) {
            *seen = self.now;
        }
    }

    fn set_role(&mut self, user: usize, role: Option<MemberRole>) {
        let random = Box::new(hash(&format!("identity {} {}", self.now, USERS[user])));
        let what = AdminCommand::SetRole { space: self.home.space, user: USERS[user].to_owned(), role, random };
        let request = AdminRequest::by("a test", what);
        let is_done = self.home.core.ask(request, Nanos(self.now)).is_ok();
        match (role, self.model.here(user).is_some()) {
            (Some(_), _) => {
                assert!(is_done);
                self.model.users.entry(user).or_default().is_gone = false;
            }
            (None, true) => {
                assert!(is_done);
                self.model.users.insert(user, Known { is_gone: true, ..Known::default() });
            }
            (None, false) => assert!(!is_done),
        }
    }

    fn take(mut self, step: &Step) -> Trial {
        self.now += Nanos::SECOND;
        match *step {
            Step::Invite { by_admin, link, uses, hours } => self.invite(by_admin, link, uses, hours),
            Step::Uninvite { link } => {
                let was_there = self.model.links.remove(&link_hash(link)).is_some();
                let said = self.ask(AccountCommand::Uninvite(admin(), link_hash(link)));
                assert_eq!(said, if was_there { "done" } else { "invitation" });
            }
            Step::Join { link, user, password } => self.join(link, user, password),
            Step::SignIn { user, password, times } => {
                let proven = password_hash(password);
                let is_good = self.model.here(user).is_some_and(|known| known.password.as_ref() == Some(&proven));
                for _ in 0..times {
                    self.now += 1;
                    self.sign_in(user, Credential::Password(proven.clone()), is_good);
                }
            }
            Step::SignInByPasskey { user, passkey: number, is_other_host } => {
                let is_known = self.model.here(user).is_some_and(|known| known.passkeys.contains(&number));
                let host = if is_other_host { "elsewhere" } else { "here" };
                self.sign_in(user, Credential::Passkey(passkey(number, host)), is_known && !is_other_host);
            }
            Step::SignOut { user, of, which } => self.sign_out(user, of, which),
            Step::SignOutOthers { user, which } => self.sign_out_others(user, which),
            Step::Touch { user, which } => self.touch(user, which),
            Step::Password { user, password } => self.change_password(user, password),
            Step::AddPasskey { user, passkey } => self.add_passkey(user, passkey),
            Step::ForgetPasskey { user, passkey } => self.forget_passkey(user, passkey),
            Step::Admit { user } => self.set_role(user, Some(MemberRole::Member)),
            Step::Remove { user } => self.set_role(user, None),
            Step::Later { hours } => self.now += hours * HOUR,
            Step::Crash => self.home = self.home.crash(),
        }
        self
    }

    /// What is stored is what the model says.
    fn compare(&self) {
        let (db, space) = (self.home.core.store().snapshot().unwrap(), self.home.space);
        for (number, user) in USERS.iter().enumerate() {
            let row = db.user(&space, user).unwrap();
            let Some(known) = self.model.users.get(&number) else {
                assert!(row.is_none(), "{user} is known");
                continue;
            };
            let account = db.account(&space, user).unwrap();
            let sessions = db.sessions_of(&space, user).unwrap();
            let passkeys = account.iter().flat_map(|account| &account.passkeys).map(|passkey| passkey.id[0]).collect();
            let stored = Known {
                is_gone: row.unwrap().is_gone,
                has_account: account.is_some(),
                password: account.as_ref().and_then(|account| account.password.clone()),
                passkeys,
                sessions: sessions.into_iter().map(|(id, session)| (id, session.seen.0)).collect(),
            };
            assert_eq!(&stored, known, "{user}");
        }
        let links = db.invitations(&space).unwrap().into_iter();
        let links: BTreeMap<_, _> = links.map(|(hash, link)| (hash, (link.ends_at.0, link.uses_left))).collect();
        assert_eq!(links, self.model.links);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Nobody comes in by a link that ended or a way that was taken back, and no way that is good is lost.
    #[test]
    fn only_those_come_in_who_may(steps in proptest::collection::vec(step(), 1..60)) {
        play(&steps);
    }
}

fn play(steps: &[Step]) {
    let home = Home::new();
    home.make_admin("alice");
    home.post("guest", "hello");
    let mut trial = Trial { home, model: Model::default(), now: NOW.0, browsers: 0 };
    for step in steps {
        trial = trial.take(step);
        trial.compare();
    }
    trial.home.verify();
}

#[test]
fn nobody_comes_in_by_a_passkey_that_the_account_does_not_have() {
    let by = |passkey: u8| Step::SignInByPasskey { user: 0, passkey, is_other_host: false };
    let (by_admin, link, user) = (true, 0, 0);
    let (invite, join) = (Step::Invite { by_admin, link, uses: 1, hours: 1 }, Step::Join { link, user, password: 0 });
    play(&[invite, join, Step::AddPasskey { user, passkey: 1 }, by(1), by(0)]);
}

#[test]
fn an_operator_who_signs_in_again_keeps_the_membership_and_one_who_was_removed_gets_a_new_one() {
    let home = Home::new();
    let sign_in = |number: u8| {
        let browser = NewSession { hash: [number; 32], agent: String::new() };
        let what = AccountCommand::SignInOperator("operator".to_owned(), browser, Box::new([8; 32]));
        home.core.ask(AccountRequest { space: home.space, what }, NOW.plus(u64::from(number))).unwrap();
        home.core.store().snapshot().unwrap().user(&home.space, "operator").unwrap().unwrap()
    };
    let first = sign_in(1);
    assert_eq!(sign_in(2).membership, first.membership);
    let (user, random) = ("operator".to_owned(), Box::new([9; 32]));
    let removal = AdminCommand::SetRole { space: home.space, user, role: None, random };
    home.core.ask(AdminRequest::by("a test", removal), NOW.plus(3)).unwrap();
    let again = sign_in(4);
    assert!(!again.is_gone && again.membership != first.membership, "{again:?}");
}
