package windrow;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** The conditions above a scan in an optimized plan that the optimizer itself can evaluate. */
final class PartitionConditions {
    final LogicalRelation leaf;
    /** Those that only use partition columns. */
    final SEQ filters;
    /** Whether there are no others, so that every row of the partitions that pass is returned. */
    final boolean complete;

    private PartitionConditions(LogicalRelation leaf, SEQ filters, boolean complete) {
        this.leaf = leaf;
        this.filters = filters;
        this.complete = complete;
    }

    /** Returns the conditions in projections and filters above our scan; null if it is not ours. */
    static PartitionConditions of(LogicalPlan plan) {
        LogicalRelation leaf = TableStrategy.leafOf(plan);
        if (leaf == null) return null;
        AttributeSet columns = partitionColumns(leaf);
        List filters = new ArrayList();
        boolean complete = true;
        while (plan != leaf) {
            if (plan instanceof Filter) {
                List parts = new ArrayList();
                divide(((Filter) plan).condition(), parts);
                for (int i = 0; i < parts.size(); i++) {
                    Expression part = (Expression) parts.get(i);
                    if (isOn(part, columns)) filters.add(part);
                    else complete = false;
                }
            } else {
                SEQ projects = ((Project) plan).projectList();
                for (int i = 0; i < projects.size(); i++) {
                    Expression project = (Expression) projects.apply(i);
                    complete &= project.deterministic();
                    // Conditions above may use its result.
                    if (!(project instanceof Attribute)) columns = columns.$minus$minus(plan.outputSet());
                }
            }
            plan = (LogicalPlan) plan.children().apply(0);
        }
        return new PartitionConditions(leaf, (SEQ) PythonUtils.toSeq(filters), complete);
    }

    static AttributeSet partitionColumns(LogicalRelation leaf) {
        HadoopFsRelation files = (HadoopFsRelation) leaf.relation();
        List columns = new ArrayList();
        for (int i = 0; i < leaf.output().size(); i++) {
            Attribute column = (Attribute) leaf.output().apply(i);
            if (files.partitionSchema().getFieldIndex(column.name()).isDefined()) columns.add(column);
        }
        return org.apache.spark.sql.catalyst.expressions.AttributeSet$.MODULE$.apply(
            (SEQ) PythonUtils.toSeq(columns));
    }

    private static void divide(Expression condition, List parts) {
        if (condition instanceof And) {
            divide(((And) condition).left(), parts);
            divide(((And) condition).right(), parts);
        } else {
            parts.add(condition);
        }
    }

    static boolean isOn(Expression condition, AttributeSet columns) {
        return condition.deterministic() && condition.references().subsetOf(columns)
            && isEvaluable(condition);
    }

    private static boolean isEvaluable(Expression expression) {
        if (expression instanceof Attribute) return true;
        if (expression instanceof PlanExpression || expression instanceof DynamicPruning) return false;
        if (expression instanceof Unevaluable) return false;
        SEQ children = (SEQ) expression.children();
        for (int i = 0; i < children.size(); i++) {
            if (!isEvaluable((Expression) children.apply(i))) return false;
        }
        return true;
    }
}
