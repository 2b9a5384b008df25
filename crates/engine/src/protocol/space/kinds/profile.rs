//! Registers of a space and of its members: settings, profiles, devices.

use super::{Belongs, KindRules};
use crate::protocol::space::{Register, ViewRow};
use crate::rows::Meta;
use model::Envelope;

pub(crate) struct Settings;

impl KindRules for Settings {
    fn rows(&self, meta: &Meta, _: &Envelope) -> Vec<ViewRow> {
        vec![ViewRow::in_register(meta, Register::Settings)]
    }
}

pub(crate) struct Profile;

impl KindRules for Profile {
    fn belongs(&self) -> Belongs {
        Belongs::Anywhere
    }

    fn rows(&self, meta: &Meta, _: &Envelope) -> Vec<ViewRow> {
        vec![ViewRow::in_register(meta, Register::Profile(meta.author))]
    }
}

pub(crate) struct Device;

impl KindRules for Device {
    fn aux_fits(&self, envelope: &Envelope) -> bool {
        !envelope.aux.is_zero()
    }

    fn belongs(&self) -> Belongs {
        Belongs::Anywhere
    }

    fn rows(&self, meta: &Meta, envelope: &Envelope) -> Vec<ViewRow> {
        vec![ViewRow::in_register(meta, Register::Device(meta.author, envelope.aux))]
    }
}
