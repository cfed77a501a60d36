//! The line of least squares.

/// How steeply `y` grows with `x`: the line of least squares.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let along = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>();
    along / points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_cost_drops_out_of_a_slope() {
        assert!((slope(&[(1.0, 107.0), (5.0, 135.0), (15.0, 205.0)]) - 7.0).abs() < 1e-9);
    }
}
